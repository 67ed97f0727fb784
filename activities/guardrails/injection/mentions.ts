import type { Span } from '../../../db/detection/spans.ts'
import rulesFile from './rules.json' with { type: 'json' }

/** A quoted text, on one line. An apostrophe within a word opens no quote. */
const QUOTED =
  /"[^"\n]{3,300}"|“[^“”\n]{3,300}”|„[^„“”\n]{3,300}[“”]|«[^«»\n]{3,300}»|`[^`\n]{3,300}`|(?<![\p{L}\p{N}])'[^'\n]{3,300}'(?![\p{L}\p{N}])|‘[^‘’\n]{3,300}’|「[^「」\n]{3,300}」/gu

const { speaksAbout, asksFor } = rulesFile.mentions

/** Words that speak about a text, before what they quote or after it. */
const SPEAKS_ABOUT = new RegExp(`\\b(?:${speaksAbout.join('|')})`, 'u')
/** Words that ask for what is quoted to be done: then it is no mention. */
const ASKS_FOR = new RegExp(`\\b(?:${asksFor.join('|')})\\b`, 'u')
const AROUND = 120

/** The places of a text in lower case that are quoted to speak about them, not to have them done. */
export function findMentions(text: string): Span[] {
  const mentions: Span[] = []
  for (const match of text.matchAll(QUOTED)) {
    const start = match.index
    const end = start + match[0].length
    const around = `${text.slice(Math.max(0, start - AROUND), start)} ${text.slice(end, end + AROUND)}`
    if (SPEAKS_ABOUT.test(around) && !ASKS_FOR.test(around)) mentions.push({ start, end })
  }
  return mentions
}

/**
 * The text without its mentions, and the mentions without the rest: both are as long as before, with spaces in the
 * gaps.
 */
export function splitMentions(text: string, mentions: readonly Span[]): { own: string; mentioned: string } {
  let [own, mentioned, done] = ['', '', 0]
  for (const { start, end } of mentions) {
    own += text.slice(done, start + 1) + ' '.repeat(end - start - 2)
    mentioned += ' '.repeat(start + 1 - done) + text.slice(start + 1, end - 1)
    done = end - 1
  }
  return { own: own + text.slice(done), mentioned: mentioned.padEnd(text.length) }
}
