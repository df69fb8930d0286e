// Solves the challenges of a Stockgate edge in a Web Worker, so that the page stays alive.
// It gets a task and posts the solution; solve.py has the format.
//
// crypto.subtle has no call for a single hash that does not go through a promise, which
// takes longer than the hash itself; so this has a SHA-256 (FIPS 180-4) of its own. Each input is one
// block of 32 bytes and 16 digits, of which only the last 8 digits change: the first ten of
// 64 rounds are done once.
'use strict'

const primes = []
for (let n = 2; primes.length < 64; n++) {
  if (primes.every((p) => n % p)) primes.push(n)
}
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0
const K = Int32Array.from(primes, (p) => fraction(Math.cbrt(p)))
const H = Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p)))

const W = new Int32Array(64)

// rounds does the rounds from one to another on the state s.
function rounds(s, from, to) {
  let a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7]
  for (let i = from; i < to; i++) {
    const t = (h + ((e >>> 6 | e << 26) ^ (e >>> 11 | e << 21) ^ (e >>> 25 | e << 7)) + (e & f ^ ~e & g) + K[i] + W[i]) | 0
    const u = (((a >>> 2 | a << 30) ^ (a >>> 13 | a << 19) ^ (a >>> 22 | a << 10)) + (a & b ^ a & c ^ b & c)) | 0
    h = g; g = f; f = e; e = (d + t) | 0
    d = c; c = b; b = a; a = (t + u) | 0
  }
  s[0] = a; s[1] = b; s[2] = c; s[3] = d; s[4] = e; s[5] = f; s[6] = g; s[7] = h
}

// expand makes the words that follow from the first 16.
function expand() {
  for (let i = 16; i < 64; i++) {
    const x = W[i - 15], y = W[i - 2]
    W[i] = (W[i - 16] + W[i - 7] + ((x >>> 7 | x << 25) ^ (x >>> 18 | x << 14) ^ x >>> 3) + ((y >>> 17 | y << 15) ^ (y >>> 19 | y << 13) ^ y >>> 10)) | 0
  }
}

// sha256 is the hash of up to 55 characters of ASCII, as eight words.
function sha256(text) {
  W.fill(0)
  for (let i = 0; i < text.length; i++) W[i >> 2] |= text.charCodeAt(i) << 24 - 8 * (i & 3)
  W[text.length >> 2] |= 0x80 << 24 - 8 * (text.length & 3)
  W[15] = 8 * text.length
  expand()
  const s = Int32Array.from(H)
  rounds(s, 0, 64)
  return s.map((word, i) => word + H[i])
}

// Four digits as a word, for each number below 10,000.
const digits = Int32Array.from({ length: 10000 }, (_, n) => {
  const text = String(n).padStart(4, '0')
  return text.charCodeAt(0) << 24 | text.charCodeAt(1) << 16 | text.charCodeAt(2) << 8 | text.charCodeAt(3)
})

// step finds a nonce whose hash behind another hash begins with so many zero bits. It
// returns both. The search begins at random: other shoppers behind this address have the
// same task, and a solution serves one order.
function step(before, zeros) {
  const s = new Int32Array(8), middle = new Int32Array(8), random = crypto.getRandomValues(new Uint32Array(2))
  for (;;) {
    const high = [random[0]++ % 10000, random[1] % 10000]
    W.fill(0)
    W.set(before)
    W[8] = digits[high[0]]
    W[9] = digits[high[1]]
    W[12] = 0x80 << 24
    W[15] = 8 * 48
    middle.set(H)
    rounds(middle, 0, 10)
    for (let n = 0; n < 1e8; n++) {
      W[10] = digits[n / 10000 | 0]
      W[11] = digits[n % 10000]
      expand()
      s.set(middle)
      rounds(s, 10, 64)
      const first = (s[0] + H[0]) | 0
      if (Math.clz32(first) >= zeros) {
        const nonce = [...high, n / 10000 | 0, n % 10000].map((part) => String(part).padStart(4, '0')).join('')
        return [nonce, s.map((word, i) => word + H[i])]
      }
    }
  }
}

function solve(task) {
  const [version, , bits] = task.split('.')
  if (version !== '1' || !(bits >= 2 && bits <= 34)) throw new Error('unknown challenge')
  let solution = task, hash = sha256(task)
  for (let i = 0; i < 4; i++) {
    let nonce
    [nonce, hash] = step(hash, bits - 2)
    solution += '.' + nonce
  }
  return solution
}

onmessage = ({ data }) => postMessage(solve(data))
