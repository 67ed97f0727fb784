import { invalid } from '../../db/fault.ts'
import { redactText } from '../../db/redaction/redact.ts'
import { cleanText } from '../../db/text.ts'
import { checkTextSchema } from '../../workflows/jsonschema/textschema.ts'
import { joinPath } from '../../workflows/problem.ts'
import type { Evaluator } from '../expressions/evaluator.ts'
import { EXPRESSIONS_BUSY, EXPRESSIONS_DOWN } from '../expressions/failures.ts'
import { createPacer } from '../expressions/pace.ts'
import type { Asker } from '../fairness/teamqueue.ts'
import type { TextFit } from '../jsonschema/texts.ts'
import { NodeFailure } from '../nodes/kit/failure.ts'
import type { Violation, ViolationAction } from './violations.ts'

const PATIENCE_MS = 60_000
/** The longest path that is told. */
const MAX_PATH = 500

/**
 * Holds a text, which must be JSON, against a JSON Schema, in an evaluator process with its limits of time and memory.
 * Throws a Fault INVALID for a schema that cannot be used, and with `patienceMs` a NodeFailure if no process was free in
 * that time; what else goes wrong is the `error` of the check.
 */
export async function checkTextAgainst(
  { evaluator, patienceMs }: { evaluator?: Evaluator | undefined; patienceMs?: number | undefined },
  { team, workflow }: Asker,
  { schema, text, action }: { schema: Record<string, unknown>; text: string; action: ViolationAction },
): Promise<{ ms: number; violations: Violation[]; error?: string }> {
  const began = performance.now()
  const took = () => performance.now() - began
  const problems = checkTextSchema(schema)
  if (problems.length > 0)
    throw invalid(
      problems.map(({ path, message }) => ({
        path: path === '' ? 'jsonSchema' : joinPath('jsonSchema', path),
        message,
      })),
    )
  if (!evaluator) return { ms: 0, violations: [], error: 'This process holds nothing against schemas' }
  const conversion = { kind: 'schema', schema: JSON.stringify(schema), text } as const
  const bindings = { input: null, nodes: {}, trigger: null, vars: {}, execution: { workflowId: workflow } }
  try {
    const fit = (await evaluator
      .for({ team, patienceMs: patienceMs ?? PATIENCE_MS })
      .convert(conversion, bindings)) as TextFit
    if ('unusable' in fit)
      throw invalid([{ path: 'jsonSchema', message: `cannot be used: ${redactText(fit.unusable)}` }])
    return { ms: took(), violations: await describeFit(fit, action) }
  } catch (error) {
    if (!(error instanceof NodeFailure)) throw error
    const away = error.type === EXPRESSIONS_BUSY || error.type === EXPRESSIONS_DOWN
    if (away && patienceMs !== undefined) throw error
    const message = away ? 'No process was free for it' : 'It took too long, or too much memory'
    return { ms: took(), violations: [], error: message }
  }
}

async function describeFit(
  fit: Exclude<TextFit, { unusable: string }>,
  action: ViolationAction,
): Promise<Violation[]> {
  const base = { type: 'SCHEMA_VALIDATION', severity: 'MEDIUM', action, confidence: 1 } as const
  if ('notJson' in fit) {
    const { message, position } = fit.notJson
    return [{ ...base, message: `The text ${message}`, details: { start: position, end: position } }]
  }
  const pace = createPacer()
  const told: Violation[] = []
  for (const { path: whole, keyword, message, start, end } of fit.misfits) {
    await pace()
    const path = tellPath(whole)
    told.push({
      ...base,
      // It quotes the schema, which may have a value that is secret.
      message: `${path === '' ? 'The value' : path}: ${redactText(message, { pii: true })}`,
      details: { start, end, path, keyword },
    })
  }
  if (fit.more === 0) return told
  return [...told, { ...base, message: `There are ${fit.more} more places that do not fit`, details: {} }]
}

/** Names of properties may be the text's own: one that has a secret or personal data in it is masked. */
function tellPath(path: string): string {
  // On a line of its own, a name is judged without the others.
  const names = path.slice(0, 2 * MAX_PATH).replaceAll('/', '/\n')
  return cleanText(redactText(names, { pii: true }).replaceAll('/\n', '/'), MAX_PATH)
}
