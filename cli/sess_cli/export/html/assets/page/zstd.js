// Zstandard (RFC 8878) without checksums and trained dictionaries, unpacked synchronously: scrolling, printing
// and links need cards at once, and the browser's own decompression is asynchronous and only deflate.

const LITERALS_BASE = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32, 40,
  48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
const LITERALS_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9,
  10, 11, 12, 13, 14, 15, 16];
const MATCH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
  27, 28, 29, 30, 31, 32, 33, 34, 35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051,
  4099, 8195, 16387, 32771, 65539];
const MATCH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const USUAL = {
  literals: [6, [4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1,
    1, -1, -1, -1, -1]],
  offsets: [5, [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1]],
  matches: [6, [1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1]],
};
const LOG = { literals: 9, offsets: 8, matches: 9 };
const DAMAGED = "this page is damaged";

/** Reads bits from the end of a range of bytes to its start, the order of both codes. */
class Backwards {
  constructor(bytes, start, end) {
    const last = bytes[end - 1];
    if (!last || end <= start) throw new Error(DAMAGED);
    this.bytes = bytes;
    this.first = start * 8;
    this.at = (end - 1) * 8 + 31 - Math.clz32(last); // the highest bit only marks the end
  }
  read(count) {
    this.at -= count;
    return this.peekAt(this.at, count);
  }
  peekAt(at, count) {
    if (at < this.first) {
      const there = count - (this.first - at);
      return there > 0 ? this.peekAt(this.first, there) << (this.first - at) : 0;
    }
    const byte = at >> 3, bytes = this.bytes;
    const word = bytes[byte] | (bytes[byte + 1] << 8) | (bytes[byte + 2] << 16) | (bytes[byte + 3] << 24);
    return (word >>> (at & 7)) & ((1 << count) - 1);
  }
}

function stateTable(log, shares) {
  const size = 1 << log;
  const symbols = new Uint8Array(size), bits = new Uint8Array(size), bases = new Uint16Array(size);
  const next = shares.map((share) => (share < 0 ? 1 : share));
  let high = size - 1;
  shares.forEach((share, symbol) => { if (share < 0) symbols[high--] = symbol; });
  const step = (size >> 1) + (size >> 3) + 3;
  let place = 0;
  shares.forEach((share, symbol) => {
    for (let each = 0; each < share; each++) {
      symbols[place] = symbol;
      do place = (place + step) & (size - 1); while (place > high);
    }
  });
  for (let state = 0; state < size; state++) {
    const value = next[symbols[state]]++;
    bits[state] = log - (31 - Math.clz32(value));
    bases[state] = (value << bits[state]) - size;
  }
  return { log, symbols, bits, bases };
}

/** A table and the offset after its description. */
function readTable(bytes, start, most) {
  let at = start * 8;
  const peek = (count) => {
    const byte = at >> 3;
    return ((bytes[byte] | (bytes[byte + 1] << 8) | (bytes[byte + 2] << 16)) >> (at & 7)) & ((1 << count) - 1);
  };
  const log = peek(4) + 5;
  at += 4;
  if (log > most) throw new Error(DAMAGED);
  const shares = [];
  let left = (1 << log) + 1;
  while (left > 1) {
    const bits = 32 - Math.clz32(left);
    const small = (1 << bits) - 1 - left;
    let value = peek(bits);
    if ((value & ((1 << (bits - 1)) - 1)) < small) { value &= (1 << (bits - 1)) - 1; at += bits - 1; }
    else { if (value >= 1 << (bits - 1)) value -= small; at += bits; }
    const share = value - 1;
    shares.push(share);
    left -= Math.abs(share);
    if (share === 0) {
      for (let again = 3; again === 3;) {
        again = peek(2);
        at += 2;
        for (let each = 0; each < again; each++) shares.push(0);
      }
    }
  }
  return [stateTable(log, shares), (at + 7) >> 3];
}

function readWeights(bytes, at) {
  const head = bytes[at++];
  const weights = [];
  if (head >= 128) {
    for (let each = 0; each < head - 127; each++) {
      weights.push(each & 1 ? bytes[at + (each >> 1)] & 15 : bytes[at + (each >> 1)] >> 4);
    }
    return [weights, at + ((head - 126) >> 1)];
  }
  const end = at + head;
  const [table, start] = readTable(bytes, at, 6);
  const stream = new Backwards(bytes, start, end);
  const states = [stream.read(table.log), stream.read(table.log)];
  for (let turn = 0; ; turn ^= 1) {
    const state = states[turn];
    weights.push(table.symbols[state]);
    if (stream.at - table.bits[state] < stream.first) { weights.push(table.symbols[states[turn ^ 1]]); break; }
    states[turn] = table.bases[state] + stream.read(table.bits[state]);
  }
  return [weights, end];
}

/** The code of the literals: for the next bits, the symbol and its length. */
function huffman(weights) {
  const sum = weights.reduce((total_, weight) => total_ + (weight ? 1 << (weight - 1) : 0), 0);
  const longest = 32 - Math.clz32(sum);
  weights.push(32 - Math.clz32((1 << longest) - sum));
  const table = new Uint16Array(1 << longest);
  let at = 0;
  for (let weight = 1; weight <= longest; weight++) {
    weights.forEach((each, symbol) => {
      if (each !== weight) return;
      table.fill(symbol * 16 + longest + 1 - weight, at, at + (1 << (weight - 1)));
      at += 1 << (weight - 1);
    });
  }
  return { table, longest };
}

function readLiterals(bytes, at, kept) {
  const kind = bytes[at] & 3, form = (bytes[at] >> 2) & 3;
  const word = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
  if (kind < 2) {
    const head = form === 1 ? 2 : form === 3 ? 3 : 1;
    const size = head === 1 ? bytes[at] >> 3 : head === 2 ? (word >> 4) & 0xfff : (word >> 4) & 0xfffff;
    at += head;
    if (kind === 0) return [bytes.subarray(at, at + size), at + size];
    return [new Uint8Array(size).fill(bytes[at]), at + 1];
  }
  const bits = form < 2 ? 10 : form === 2 ? 14 : 18;
  const size = (word >>> 4) & ((1 << bits) - 1);
  const packed = form < 2 ? (word >>> 14) & 0x3ff : form === 2 ? word >>> 18
    : ((word >>> 22) | (bytes[at + 4] << 10)) & 0x3ffff;
  at += form < 2 ? 3 : form === 2 ? 4 : 5;
  const end = at + packed;
  if (kind === 2) {
    const [weights, after] = readWeights(bytes, at);
    kept.huffman = huffman(weights);
    at = after;
  }
  const literals = new Uint8Array(size);
  const ends = [end];
  let quarter = size;
  if (form > 0) {
    quarter = (size + 3) >> 2;
    const sizes = [0, 2, 4].map((each) => bytes[at + each] | (bytes[at + each + 1] << 8));
    at += 6;
    ends.length = 0;
    for (const each of sizes) ends.push((ends.at(-1) ?? at) + each);
    ends.push(end);
  }
  const { table, longest } = kept.huffman;
  let written = 0;
  for (const stop of ends) {
    const stream = new Backwards(bytes, at, stop);
    const until = stop === end ? size : written + quarter;
    let place = stream.at;
    while (written < until) {
      const found = table[stream.peekAt(place - longest, longest)];
      literals[written++] = found >> 4;
      place -= found & 15;
    }
    at = stop;
  }
  return [literals, end];
}

/** Decodes one block into `to`; tables and offsets are kept for the next. */
function readBlock(bytes, at, end, to, written, kept) {
  const [literals, after] = readLiterals(bytes, at, kept);
  at = after;
  let count = bytes[at++];
  if (count === 255) { count = (bytes[at] | (bytes[at + 1] << 8)) + 0x7f00; at += 2; }
  else if (count >= 128) count = ((count - 128) << 8) + bytes[at++];
  let used = 0;
  if (count) {
    const modes = bytes[at++];
    ["literals", "offsets", "matches"].forEach((name, each) => {
      const mode = (modes >> (6 - 2 * each)) & 3;
      if (mode === 0) kept[name] = stateTable(...USUAL[name]);
      else if (mode === 1) kept[name] = { log: 0, symbols: [bytes[at++]], bits: [0], bases: [0] };
      else if (mode === 2) [kept[name], at] = readTable(bytes, at, LOG[name]);
    });
    const { literals: ll, offsets: of, matches: ml, recent: reps } = kept;
    const stream = new Backwards(bytes, at, end);
    let l = stream.read(ll.log), o = stream.read(of.log), m = stream.read(ml.log);
    for (let each = 0; each < count; each++) {
      const lengthCode = ll.symbols[l], offsetCode = of.symbols[o], matchCode = ml.symbols[m];
      const value = (1 << offsetCode) + stream.read(offsetCode);
      const match = MATCH_BASE[matchCode] + stream.read(MATCH_BITS[matchCode]);
      const length = LITERALS_BASE[lengthCode] + stream.read(LITERALS_BITS[lengthCode]);
      let back;
      if (value > 3) {
        back = value - 3;
        reps[2] = reps[1]; reps[1] = reps[0]; reps[0] = back;
      } else {
        const index = value - (length ? 1 : 0);
        back = index === 3 ? reps[0] - 1 : reps[index];
        if (index > 1) reps[2] = reps[1];
        if (index > 0) { reps[1] = reps[0]; reps[0] = back; }
      }
      for (const until = used + length; used < until;) to[written++] = literals[used++];
      if (back > written) throw new Error(DAMAGED);
      for (const until = written + match; written < until; written++) to[written] = to[written - back];
      if (each < count - 1) {
        l = ll.bases[l] + stream.read(ll.bits[l]);
        m = ml.bases[m] + stream.read(ml.bits[m]);
        o = of.bases[o] + stream.read(of.bits[o]);
      }
    }
  }
  to.set(literals.subarray(used), written);
  return written + literals.length - used;
}

/** `size` is stored before the frame, because the frame encodes it in one of many ways; matches may
 *  lie in the bytes `before`. */
function unpack(bytes, size, before) {
  const to = new Uint8Array(before.length + size);
  to.set(before);
  const flags = bytes[4];
  const single = (flags >> 5) & 1;
  let at = 5 + (1 - single) + [single, 2, 4, 8][flags >> 6];
  const kept = { recent: [1, 4, 8] };
  let written = before.length;
  for (let last = 0; !last;) {
    const head = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16);
    const kind = (head >> 1) & 3, length = head >> 3;
    last = head & 1;
    at += 3;
    if (kind === 0) { to.set(bytes.subarray(at, at + length), written); written += length; at += length; }
    else if (kind === 1) { to.fill(bytes[at++], written, written + length); written += length; }
    else { written = readBlock(bytes, at, at + length, to, written, kept); at += length; }
  }
  if (written !== to.length) throw new Error(DAMAGED);
  return to.subarray(before.length);
}

function fromBase64(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

/** The bytes of what `chunks._framed` wrote. */
function unframed(bytes, before = new Uint8Array()) {
  const size = bytes[0] | (bytes[1] << 8) | (bytes[2] << 16) | (bytes[3] << 24);
  return unpack(bytes.subarray(4), size, before);
}

const unsqueezed = (bytes) => new TextDecoder().decode(unframed(bytes));
