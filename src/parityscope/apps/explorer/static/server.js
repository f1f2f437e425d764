// Questions to the server: an answer, or the sentence that says what is wrong.

export function ask(path, body) {
  return answered(path, body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
}

/** Return a file of the server as one that was dropped on the page. */
export async function file(path, name) {
  let response;
  try { response = await fetch(path); } catch { response = null; }
  if (!response?.ok) throw new Error(`${name} could not be read: is parityscope explore still running?`);
  return new File([await response.blob()], name);
}

/** Send a file as it is. */
export function send(path, file) {
  return answered(path, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
}

async function answered(path, options) {
  let response, text;
  try {
    response = await fetch(path, options);
    text = await response.text();
  } catch {
    throw new Error("the server does not answer: is parityscope explore still running?");
  }
  const answer = parsed(text);
  if (!response.ok) throw new Error(answer?.message || `the server failed (${response.status}): the terminal that runs parityscope explore says why`);
  if (answer === null) throw new Error("the answer was not for this page: does another program answer at this address?");
  return answer;
}

/** Return what JSON says, or null: a server that fails, or another one at the same port, answers with words. */
function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}

export function complain(sentence) {
  const box = document.getElementById("message");
  box.textContent = sentence;
  box.hidden = !sentence;
}

/** Run the only question of its kind: a newer one makes the older answer stale. */
export function latest() {
  let current = 0;
  return async (question, use) => {
    const mine = ++current;
    try {
      const answer = await question();
      if (mine === current) { complain(""); use(answer); }
    } catch (error) {
      if (mine === current) complain(error.message);
    }
  };
}
