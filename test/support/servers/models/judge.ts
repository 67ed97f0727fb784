import { startOpenAi } from './openai.ts'
import type { VendorAnswer, VendorCall } from './vendor.ts'

/** What a question of guardrails has told the judge: the code of the answer, the instruction, and the text between its marks. */
export function readQuestion({ body }: VendorCall): { code: string; system: string; text: string } {
  const messages = body.messages as { role: string; content: unknown }[]
  const textOf = ({ content }: { content: unknown }) =>
    typeof content === 'string' ? content : (content as { text: string }[]).map(({ text }) => text).join('')
  const system = messages
    .filter(({ role }) => role === 'system')
    .map(textOf)
    .join('\n')
  const user = textOf(messages.find(({ role }) => role === 'user')!)
  const code = /code is "(\w+)"/.exec(system)![1]!
  const [, text = ''] = /^<text-\w+>\n([\s\S]*)\n<\/text-\w+>$/.exec(user)!
  return { code, system, text }
}

/** An answer as it was asked for. */
export const verdict = (call: VendorCall, flagged: boolean, confidence = 0.9): VendorAnswer => ({
  text: JSON.stringify({ code: readQuestion(call).code, flagged, confidence }),
})

/** Starts a loopback server with OpenAI's API that judges: it flags texts that have the word `bad`. */
export const startJudge = () => startOpenAi((call) => verdict(call, /\bbad\b/.test(readQuestion(call).text)))
