/** A file as a value between nodes: what it is. Its bytes lie sealed in the database, with its execution. */
export type FileValue = { file: { id: string; name: string; mimeType: string; bytes: number } }

/** The files of an execution, for a call of one of its nodes. */
export type Files = {
  /** A file of this execution. Throws a NodeFailure (FileMissing) for a value that names none. */
  open(value: unknown): Promise<OpenFile>
  /** Stores a file of this execution, in pieces. Throws a NodeFailure (FileTooLarge) over a limit. */
  store(what: { name: string; mimeType: string }, bytes: Bytes): Promise<FileValue>
}

export type OpenFile = FileValue['file'] & {
  /** The bytes in pieces, each checked. */
  stream(): AsyncIterable<Uint8Array>
  /** All bytes at once. Throws a NodeFailure (FileTooLarge) if they are more than `most`. */
  read(most: number): Promise<Uint8Array>
}

export type Bytes = Uint8Array | AsyncIterable<Uint8Array>

/** Whether a value is a file: an object with nothing but a `file` that has the four fields of one. */
export function isFileValue(value: unknown): value is FileValue {
  const { file } = Object(value)
  const { id, name, mimeType, bytes } = Object(file)
  const isNamed = typeof id === 'string' && typeof name === 'string' && typeof mimeType === 'string'
  return isNamed && typeof bytes === 'number' && Object.keys(Object(value)).length === 1
}

/**
 * The file that a value is, in one of the forms in which expressions give it: a file value, perhaps with keys beside
 * `file`, or what `$binary` shows of one. Undefined for any other value.
 */
export function readFileValue(value: unknown): FileValue | undefined {
  const plain = { file: Object(value).file }
  if (isFileValue(plain)) return plain
  const { id, fileName, mimeType, bytes } = Object(value)
  const shown = { file: { id, name: fileName, mimeType, bytes } }
  return isFileValue(shown) ? shown : undefined
}
