import type { SourceNode } from '../document.ts'
import type { ProblemReporter } from '../report.ts'

/** The path of a webhook or form. `option` is the one that newer versions of a trigger have among their options. */
export function readHookPath(
  { parameters, raw }: SourceNode,
  report: ProblemReporter,
  option?: unknown,
): string {
  const given = String(option || parameters.path || raw.webhookId || 'webhook')
  const plain = given
    .replace(/[^A-Za-z0-9_-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 100)
  const path = plain || 'webhook'
  if (path !== given) {
    const message =
      `n8n listens at the path "${given}". Perdure allows only letters, digits, - and _ in a path, and ` +
      `listens at "${path}": tell the callers.`
    report('parameter', 'parameters.path', message, given)
  }
  return path
}
