// The output of a job as the service sends it: a line of JSON, then so many bytes.

/** Reads the answer of POST /v1/logs; yields `{stream, attempt, ended, text}`. */
export async function* frames(answer) {
  const reader = answer.body.getReader();
  const decoders = {};
  let rest = new Uint8Array(0);

  async function more() {
    const { done, value } = await reader.read();
    if (done) return false;
    const joined = new Uint8Array(rest.length + value.length);
    joined.set(rest);
    joined.set(value, rest.length);
    rest = joined;
    return true;
  }

  for (;;) {
    let end = rest.indexOf(10);
    while (end < 0) {
      if (!(await more())) return;
      end = rest.indexOf(10);
    }
    const head = JSON.parse(new TextDecoder().decode(rest.subarray(0, end)));
    rest = rest.subarray(end + 1);
    while (rest.length < head.bytes) if (!(await more())) return;
    const name = head.stream ?? "";
    decoders[name] ??= new TextDecoder();
    const text = decoders[name].decode(rest.subarray(0, head.bytes), { stream: true });
    rest = rest.subarray(head.bytes);
    yield { stream: head.stream, attempt: head.attempt, ended: head.ended, text };
  }
}
