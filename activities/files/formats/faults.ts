import { NodeFailure } from '../../nodes/kit/failure.ts'

/** The failure for a file that is not what it should be. The message begins with the file's name. */
export function invalidFile(name: string, problem: string): NodeFailure {
  return new NodeFailure(`${name} ${problem}`, { type: 'InvalidInput' })
}

/** The failure for a file that would take too much to be read. */
export function excessiveFile(name: string, problem: string): NodeFailure {
  return new NodeFailure(`${name} ${problem}`, { type: 'FileTooLarge' })
}

/** A size as people write it: `16 MB`, `1.5 MB`, `12 bytes`. */
export function writeSize(bytes: number): string {
  if (bytes < 1_024) return `${bytes} bytes`
  const [size, unit] = bytes < 1_024 * 1_024 ? [bytes / 1_024, 'KB'] : [bytes / 1_024 / 1_024, 'MB']
  return `${Number(size.toFixed(1))} ${unit}`
}
