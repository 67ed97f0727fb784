/**
 * A text that was made of another one, with the place in the original from which each of its UTF-16 units was read:
 * `starts[i]` up to, not including, `ends[i]`.
 */
export type MappedText = { text: string; starts: Int32Array; ends: Int32Array }

/**
 * A text read in place of the units of a reading from `start` up to `end`; `from` says from which of them each unit
 * came.
 */
export type Edit = {
  start: number
  end: number
  text: string
  /** For each unit of `text` the first unit of the reading it came from, and the one after the last. */
  from: ArrayLike<number>
  to: ArrayLike<number>
}

/** The number of units around decoded text that are kept, so that the text before and after is read with it. */
const CONTEXT = 60

/** Puts a reading together. `capacity` is the length that is expected. */
export function createReading(capacity: number) {
  let starts: Int32Array = new Int32Array(capacity + 16)
  let ends: Int32Array = new Int32Array(capacity + 16)
  let parts: string[] = []
  let text = ''
  let length = 0
  const room = (more: number) => {
    if (length + more <= starts.length) return
    const size = Math.max(length + more, starts.length * 2)
    starts = copyInto(new Int32Array(size), starts)
    ends = copyInto(new Int32Array(size), ends)
  }
  return {
    get length() {
      return length
    },
    /** Adds a text, all of it read from one place. */
    add(piece: string, start: number, end: number) {
      room(piece.length)
      starts.fill(start, length, length + piece.length)
      ends.fill(end, length, length + piece.length)
      length += piece.length
      parts.push(piece)
      if (parts.length > 1_000) {
        text += parts.join('')
        parts = []
      }
    },
    /** Adds a part of a reading as it is. */
    copy(reading: MappedText, start: number, end: number) {
      if (end <= start) return
      room(end - start)
      starts.set(reading.starts.subarray(start, end), length)
      ends.set(reading.ends.subarray(start, end), length)
      length += end - start
      parts.push(reading.text.slice(start, end))
    },
    finish: (): MappedText => ({
      text: text + parts.join(''),
      starts: starts.subarray(0, length),
      ends: ends.subarray(0, length),
    }),
  }
}

function copyInto(to: Int32Array, from: Int32Array): Int32Array {
  to.set(from)
  return to
}

/** The reading that a text is of itself. */
export function readPlainly(text: string): MappedText {
  const starts = Int32Array.from({ length: text.length }, (_, index) => index)
  return { text, starts, ends: starts.map((index) => index + 1) }
}

/** A reading in lower case, which every unit keeps its place in. */
export function readLower({ text, starts, ends }: MappedText): MappedText {
  const lower = text.toLowerCase()
  // A letter whose lower case is longer stays as it is: there are two of them, and the normaliser has replaced them.
  return { text: lower.length === text.length ? lower : lowerUnits(text), starts, ends }
}

function lowerUnits(text: string): string {
  return Array.from(text, (char) => {
    const lower = char.toLowerCase()
    return lower.length === char.length ? lower : char
  }).join('')
}

/**
 * The readings in which the edits are made, each with some text around; edits that are near each other are made in one.
 * Edits are sorted by start; of those that overlap only the first is made. At most `most` units in all.
 */
export function applyEdits(reading: MappedText, edits: Edit[], most: number): MappedText[] {
  const made: MappedText[] = []
  let left = most
  for (let first = 0; first < edits.length && left > 0; ) {
    let done = Math.max(0, edits[first]!.start - CONTEXT)
    const building = createReading(4 * CONTEXT)
    let last = -1
    let next = first
    for (; next < edits.length && building.length < left; next++) {
      const edit = edits[next]!
      if (last >= 0 && edit.start - last > 2 * CONTEXT) break
      if (edit.start < last) continue
      building.copy(reading, done, edit.start)
      building.copy(readEdit(reading, edit), 0, edit.text.length)
      done = edit.end
      last = edit.end
    }
    building.copy(reading, done, Math.min(reading.text.length, done + CONTEXT))
    made.push(takeFirst(building.finish(), left))
    left -= building.length
    first = next
  }
  return made
}

function takeFirst({ text, starts, ends }: MappedText, most: number): MappedText {
  return { text: text.slice(0, most), starts: starts.subarray(0, most), ends: ends.subarray(0, most) }
}

function readEdit({ starts, ends }: MappedText, { text, from, to }: Edit): MappedText {
  const read = { text, starts: new Int32Array(text.length), ends: new Int32Array(text.length) }
  for (let i = 0; i < text.length; i++) {
    const [first, last] = [from[i]!, to[i]! - 1]
    // In a text that is read backwards, the last unit comes first.
    read.starts[i] = Math.min(starts[first]!, starts[last]!)
    read.ends[i] = Math.max(ends[first]!, ends[last]!)
  }
  return read
}
