import { validate } from 'uuid'
import type { Checkpoint } from '../../db/audit/verify/walk.ts'

/** The command line after the command's name: `words` are the arguments that are not options. */
export type CommandArguments = { words: string[]; options: Record<string, string | boolean | undefined> }

/** The command line is wrong; the usage is printed after the message. */
export class UsageError extends Error {}

/** Reads an option's value, trimmed. Throws UsageError if it is missing or blank. */
export function readOption({ options }: CommandArguments, name: string): string {
  const value = options[name]
  if (typeof value !== 'string' || value.trim() === '') throw new UsageError(`--${name} must be given`)
  return value.trim()
}

/** Reads a UUID, in lower case. Throws UsageError for anything else. */
export function readUuid(text: string): string {
  if (!validate(text)) throw new UsageError(`${text} is not a UUID`)
  return text.toLowerCase()
}

/** Reads one of `choices`, in upper or lower case. Throws UsageError for anything else, which `name` begins. */
export function readChoice<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === text.toUpperCase())
  if (!found) throw new UsageError(`${name} must be one of ${choices.join(', ')}, not ${text}`)
  return found
}

/** Reads `--checkpoint`: an entry that was noted. Throws UsageError for anything else than <seq>:<hash>. */
export function readCheckpoint({ options }: CommandArguments): Checkpoint | undefined {
  if (options.checkpoint === undefined) return undefined
  const [, seq, hash] = /^([1-9]\d{0,14}):([\da-f]{64})$/i.exec(String(options.checkpoint)) ?? []
  if (!seq || !hash)
    throw new UsageError('--checkpoint must be <seq>:<hash>, as audit verify prints it for the last entry')
  return { seq: Number(seq), hash }
}
