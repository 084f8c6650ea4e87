// What this browser keeps for this server. Where it may keep nothing, a visit knows only itself.

const PREFIX = "proofgate-explorer/";
const memory = new Map();
let durable = true;

export function read(name, otherwise) {
  try {
    const text = memory.get(name) ?? localStorage.getItem(PREFIX + name);
    return text ? JSON.parse(text) : otherwise;
  } catch {
    return otherwise;
  }
}

export function write(name, value) {
  const text = JSON.stringify(value);
  try {
    localStorage.setItem(PREFIX + name, text);
    memory.delete(name);
  } catch {
    durable = false;
    memory.set(name, text);
  }
}

/** Whether all that was to be kept outlives the visit. */
export const isDurable = () => durable;
