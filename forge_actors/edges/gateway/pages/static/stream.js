// Server-sent events, read from an answer as it comes.

/** Yields lists of `{id, event, data}`; an id alone says how far the stream has come. */
export async function* messages(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let fields = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    const found = [];
    for (const line of lines) {
      if (line) fields.push(line);
      else if (fields.length) found.push(message(fields.splice(0)));
    }
    if (found.length) yield found;
  }
}

function message(fields) {
  const made = { id: null, event: "message", data: "" };
  for (const field of fields) {
    const [, name, value] = /^([^:]*):? ?(.*)$/.exec(field);
    if (name === "data") made.data += made.data ? `\n${value}` : value;
    else if (name in made) made[name] = value;
  }
  return made;
}
