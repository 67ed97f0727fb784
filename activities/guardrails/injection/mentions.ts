import type { Span } from '../../../db/detection/spans.ts'

/** What stands in quotes, on one line. An apostrophe within a word opens no quote. */
const QUOTED =
  /"[^"\n]{3,300}"|“[^“”\n]{3,300}”|„[^„“”\n]{3,300}[“”]|«[^«»\n]{3,300}»|`[^`\n]{3,300}`|(?<![\p{L}\p{N}])'[^'\n]{3,300}'(?![\p{L}\p{N}])|‘[^‘’\n]{3,300}’|「[^「」\n]{3,300}」/gu

/** Words that speak about a text, before what they quote or after it. */
const SPEAKS_ABOUT =
  /\b(?:detect\w*|mean(?:s|ing|t)?|phrases?|strings?|called|titled|named|attack\w*|inject\w*|jailbreak\w*|flag(?:s|ged|ging)?|scann?er|filter(?:s|ed)?|pattern|regex|regular expression|keyword|example|quote[sd]?|sentence|wrote|writes|said|says|sent|reads|article|paper|blog|book|title|film|song|chapter|log|logs|classif(?:y|ies|ied)|sentiment|false positive|malicious|block(?:s|ed)?|prevent|recogni[sz]e|explain|what (?:is|does)|how (?:do|can|to|would|should)|why|history of|term|wort|bedeutet|bedeutung|satz|erkenne|erkennt|signifie|phrase|frase|significa|qué|cómo|что|значит|意思|什么是|意味)/u
/** Words that ask for what is quoted to be done: then it is no mention. */
const ASKS_FOR =
  /\b(?:follow|obey|execute|comply|carry out|do (?:what|as)|act on|run (?:it|this|that)|respond with|reply with|answer with|output|print|start with|begin with|befolge|führe|suis|sigue|выполни)\b/u
const AROUND = 120

/** The places of a text in lower case that are quoted by somebody who speaks about them, not in order to have them done. */
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

/** The text without what is only mentioned, and what is mentioned without the rest: both with spaces in place, as long as before. */
export function splitMentions(text: string, mentions: readonly Span[]): { own: string; mentioned: string } {
  let [own, mentioned, done] = ['', '', 0]
  for (const { start, end } of mentions) {
    own += text.slice(done, start + 1) + ' '.repeat(end - start - 2)
    mentioned += ' '.repeat(start + 1 - done) + text.slice(start + 1, end - 1)
    done = end - 1
  }
  return { own: own + text.slice(done), mentioned: mentioned.padEnd(text.length) }
}
