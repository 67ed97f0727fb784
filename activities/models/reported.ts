import type { LanguageModelV4Usage } from '@ai-sdk/provider'
import { isObject } from '../../workflows/json.ts'
import type { ModelUsage } from './model.ts'

/** By what names vendors report the tokens of the input and of the output; of the latter one is enough. */
const REPORTED: [string, string[]][] = [
  ['prompt_tokens', ['completion_tokens']],
  ['input_tokens', ['output_tokens']],
  ['promptTokenCount', ['candidatesTokenCount', 'thoughtsTokenCount']],
]

/** Whether it has the form of the protocol of chat completions. */
export const isChatUsage = ({ raw }: LanguageModelV4Usage) => isObject(raw) && 'completion_tokens' in raw

/** Whether a vendor has reported both counts: libraries take what was not sent for 0. */
function isReported({ raw, inputTokens, outputTokens }: LanguageModelV4Usage): boolean {
  // No call takes nothing at all.
  if (!inputTokens.total && !outputTokens.total) return false
  if (!isObject(raw)) return true
  return REPORTED.some(
    ([input, outputs]) =>
      typeof raw[input] === 'number' && outputs.some((output) => typeof raw[output] === 'number'),
  )
}

/** The tokens of an answer; null if the vendor has not reported all. Libraries may give parts that exceed their whole. */
export function readUsage(usage: LanguageModelV4Usage): ModelUsage | null {
  const { inputTokens, outputTokens } = usage
  if (inputTokens.total === undefined || outputTokens.total === undefined || !isReported(usage)) return null
  const count = (value: number | undefined, most: number) =>
    Math.min(Number.isFinite(value) ? Math.max(0, Math.round(value!)) : 0, most)
  const input = count(inputTokens.total, Number.MAX_SAFE_INTEGER)
  const output = count(outputTokens.total, Number.MAX_SAFE_INTEGER)
  const cached = count(inputTokens.cacheRead, input)
  return {
    input,
    output,
    cached,
    cacheWrite: count(inputTokens.cacheWrite, input - cached),
    reasoning: count(outputTokens.reasoning, output),
  }
}
