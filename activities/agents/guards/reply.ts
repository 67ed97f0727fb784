import { isObject } from '../../../workflows/json.ts'
import type { GuardrailChecks } from '../../../workflows/nodes/guardrails.ts'
import { findMarked, type MarkedSpan, markText } from '../../guardrails/marked.ts'
import { writeValue } from '../../guardrails/values.ts'
import { findJson } from '../../models/jsontext.ts'
import type { ModelReply, ToolCall } from '../../models/model.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import { checkGuarded, describeGuard, type GuardNote, NO_CHECKS, noteGuard } from './guards.ts'

/** The number of characters of the earlier text that is checked together with a turn that is not the last one. */
const TAIL = 8_192

/** A reply that may be told: `whole` is the text of all turns, and `faults` says of calls why they are not made. */
export type GuardedReply =
  | { passed: false; note: GuardNote }
  | { passed: true; notes: GuardNote[]; reply: ModelReply; whole: string; faults: Map<ToolCall, string> }

/**
 * Checks what a model has said: its text together with that of the turns `before`, and what it wants to call tools with.
 * A text that is blocked blocks the reply. A call whose arguments have a violation, also one that would be redacted, is
 * not made, and its arguments are dropped: a tool that is called with a marker would do something else.
 */
export async function guardReply(
  context: NodeContext,
  checks: GuardrailChecks,
  { reply, before }: { reply: ModelReply; before: string[] },
): Promise<GuardedReply> {
  const isFinal = reply.toolCalls.length === 0
  const said = await guardText(context, isFinal ? checks : { ...checks, validateSchema: false }, {
    before: isFinal ? before : [before.join('').slice(-TAIL)],
    text: reply.text,
  })
  if (!said.passed) return said
  const { text, whole } = said
  const { calls, faults, notes, isRenamed } = await guardCalls(context, checks, reply.toolCalls)
  const { message } = reply
  const { parts, ...plain } = message
  const kept =
    parts && !isRenamed ? { parts: { ...parts, value: cleanParts(parts.value, reply.text, text) } } : {}
  return {
    passed: true,
    notes: [said.note, ...notes],
    reply: {
      ...reply,
      text,
      toolCalls: calls,
      message: { ...plain, content: text, ...kept, ...(calls.length > 0 ? { toolCalls: calls } : {}) },
    },
    whole,
    faults,
  }
}

/** Checks a text as the end of a longer one. JSON that must fit a schema is JSON that fits it, also with markers in it. */
async function guardText(
  context: NodeContext,
  checks: GuardrailChecks,
  { before, text }: { before: string[]; text: string },
): Promise<
  { passed: false; note: GuardNote } | { passed: true; note: GuardNote; text: string; whole: string }
> {
  const object = checks.validateSchema ? findJson(text)?.value : undefined
  const own = await writeValue(object ?? text)
  const lead = before.join('')
  const result = await checkGuarded(context, checks, { text: lead + own.text, json: text })
  const spans = findMarked(result.violations)
  const inLead = clip(spans, 0, lead.length)
  const inOwn = clip(spans, lead.length, lead.length + own.text.length)
  const marked = inOwn.length === 0 ? text : await own.mark(inOwn)
  const told = typeof marked === 'string' ? marked : JSON.stringify(marked)
  if (result.passed && checks.validateSchema && told !== text) {
    const only = {
      ...NO_CHECKS,
      validateSchema: true,
      jsonSchema: checks.jsonSchema,
      onViolation: checks.onViolation,
    }
    const again = await checkGuarded(context, only, { text: '', json: told })
    result.violations.push(...again.violations)
    result.checks.push(...again.checks)
    result.passed = again.passed
  }
  const note = noteGuard(context, 'output', result)
  if (!result.passed) return { passed: false, note }
  return { passed: true, note, text: told, whole: markText(lead, inLead) + told }
}

/** The parts of spans between two places, counted from the first one. */
function clip(spans: MarkedSpan[], from: number, to: number): MarkedSpan[] {
  return spans.flatMap(({ start, end, marker }) =>
    start < to && end > from
      ? [{ start: Math.max(start, from) - from, end: Math.min(end, to) - from, marker }]
      : [],
  )
}

type GuardedCalls = {
  calls: ToolCall[]
  faults: Map<ToolCall, string>
  notes: GuardNote[]
  /** A call has another name now: the parts that only the vendor understands do not fit it. */
  isRenamed: boolean
}

async function guardCalls(
  context: NodeContext,
  checks: GuardrailChecks,
  given: ToolCall[],
): Promise<GuardedCalls> {
  if (given.length === 0) return { calls: given, faults: new Map(), notes: [], isRenamed: false }
  const texts: string[] = []
  for (const { name, arguments: args, invalid } of given)
    texts.push(`${(await writeValue({ [name]: invalid ?? args })).text}\n`)
  const result = await checkGuarded(context, { ...checks, validateSchema: false }, { text: texts.join('') })
  const grave = result.violations.filter(({ action }) => action === 'BLOCKED' || action === 'REDACTED')
  const isAll = !result.passed && grave.length === 0
  const note = noteGuard(context, 'output', { ...result, passed: !isAll && grave.length === 0 })
  const faults = new Map<ToolCall, string>()
  let isRenamed = false
  let end = 0
  const calls = given.map((call, at) => {
    const start = end
    end += texts[at]!.length
    const own = grave.filter(
      ({ details }) => details.start === undefined || (details.start < end && (details.end ?? end) > start),
    )
    if (!isAll && own.length === 0) return call
    const inName = own.some(
      ({ details }) => details.start === undefined || details.start < start + call.name.length,
    )
    isRenamed ||= inName
    const { invalid: _, ...rest } = call
    const kept = { ...rest, ...(inName ? { name: 'blocked' } : {}), arguments: {} }
    const types = own.map(({ type }) => type)
    const why = types.length > 0 ? [...new Set(types)].join(', ') : describeGuard(note)
    faults.set(kept, `the call was not made: its arguments were blocked by a guardrail: ${why}`)
    return kept
  })
  return { calls, faults, notes: [note], isRenamed }
}

/** What only the vendor understands, with another text. */
function cleanParts(parts: unknown, before: string, text: string): unknown {
  if (!Array.isArray(parts) || before === text) return parts
  const first = parts.findIndex((part) => isObject(part) && part.type === 'text')
  return parts.flatMap((part, at) => {
    if (!isObject(part) || part.type !== 'text') return [part]
    return at === first && text !== '' ? [{ ...part, text }] : []
  })
}
