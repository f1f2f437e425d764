// The state of the page is its address: #view?name=value&… A link is therefore all there is to share.

export function readAddress() {
  const [view, query] = location.hash.slice(1).split("?");
  return { view, values: new URLSearchParams(query || "") };
}

export function writeAddress(view, values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  history.replaceState(null, "", `#${view}${text ? "?" + text : ""}`);
}

/** Fill a form's fields from an address; one that names any field leaves the others empty where they may be. */
export function fillForm(form, values) {
  const fields = [...form.elements].filter((field) => field.name);
  if (!fields.some((field) => values.has(field.name))) return;
  for (const field of fields) {
    if (values.has(field.name)) field.value = values.get(field.name);
    else if (field.placeholder || field.value === "") field.value = "";
  }
}

/** Return what a form holds, empty fields left out. Everything is checked by the server, so text stays text. */
export function formValues(form) {
  return Object.fromEntries([...new FormData(form)].filter(([, value]) => String(value).trim() !== ""));
}
