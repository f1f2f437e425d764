// Questions to the server: an answer, or the sentence that says what is wrong.

export function ask(path, body) {
  return answered(path, body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
}

/** Send a file as it is. */
export function send(path, file) {
  return answered(path, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
}

async function answered(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("the server does not answer: is parityscope explore still running?");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.message || `the server answered ${response.status}`);
  return answer;
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
