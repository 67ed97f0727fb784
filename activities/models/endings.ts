import type { LanguageModelV4FinishReason } from '@ai-sdk/provider'
import { NodeFailure } from '../nodes/kit/failure.ts'
import { brokenOffBy, cutOff, uselessAnswer, type Vendor } from './failures.ts'
import type { ModelReply } from './model.ts'

type Finish = ModelReply['finish'] | 'broken'

/** How many characters are shown of a reason, or of a name, that a model has made up. */
export const MAX_REASON = 100

const FINISHES: Partial<Record<LanguageModelV4FinishReason['unified'], Finish>> = {
  stop: 'stop',
  length: 'length',
  'content-filter': 'filter',
  'tool-calls': 'tools',
  error: 'broken',
}

/** How servers name the end of an answer beside the names of their protocol. */
const OWN_FINISHES: [RegExp, Finish][] = [
  [/error|abort|cancel|fail|insufficient|timeout|interrupt|malformed/i, 'broken'],
  [/length|max_?tokens|token_limit/i, 'length'],
  [/filter|safety|sensitive|moderation|refus|recitation|prohibited|blocklist/i, 'filter'],
  [/^(?:eos|eos_token|end|end_turn|end_of_text|complete|completed|done|stop_\w{1,20})$/i, 'stop'],
]

export const UNENDED: LanguageModelV4FinishReason = { unified: 'interrupted', raw: undefined }

export const isUnnamed = ({ unified, raw }: LanguageModelV4FinishReason) =>
  unified === 'interrupted' || (unified === 'other' && raw === undefined)

export const lacksReason = (error: unknown) =>
  /ended without a finish reason/.test((error as Error | undefined)?.message ?? '')

/** How an answer has ended; 'broken' if it is not to be used. */
export function readFinish({ unified, raw }: LanguageModelV4FinishReason): Finish {
  const known = FINISHES[unified]
  if (known) return known
  const said = String(raw).slice(0, MAX_REASON)
  return OWN_FINISHES.find(([name]) => name.test(said))?.[1] ?? 'other'
}

/** What an error that a vendor's library has thrown, or found in the answer, means for the node. */
export function judgeAnswerError(vendor: Vendor, error: unknown): unknown {
  if (error instanceof NodeFailure) return error
  const name = error instanceof Error ? error.name : ''
  if (/^AI_(?:Invalid(?:Prompt|Argument)|UnsupportedFunctionality|NoSuchModel)/.test(name))
    return new NodeFailure(`${vendor.name} cannot be asked this: ${(error as Error).message}`, {
      type: 'ModelRefused',
    })
  if (lacksReason(error)) return cutOff(vendor)
  const unreadable = /^AI_(?:JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody)/.test(name)
  if (
    unreadable ||
    /Expected a normalized|^Unsupported (?:chunk|delta)/.test((error as Error)?.message ?? '')
  )
    return uselessAnswer(vendor, 'is not in the form of its protocol')
  // Others are faults of ours.
  return error instanceof Error && !name.startsWith('AI_') ? error : brokenOffBy(vendor, error)
}
