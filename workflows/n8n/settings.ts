import { getOwn } from '../json.ts'
import type { ProblemReporter } from './report.ts'

export type MappedSettings = { timeoutMs?: number; timezone?: string; errorWorkflowId?: string }

/** For each setting, the values that make no difference in Perdure. */
const HARMLESS: Record<string, unknown[]> = {
  executionOrder: ['v1'],
  executionTimeout: [-1, 0],
  timezone: ['DEFAULT'],
  errorWorkflow: ['', 'DEFAULT'],
  callerPolicy: ['workflowsFromSameOwner', 'workflowsFromAList'],
  saveManualExecutions: [true, 'DEFAULT'],
  saveDataErrorExecution: ['all', 'DEFAULT'],
  saveDataSuccessExecution: ['all', 'DEFAULT'],
  saveExecutionProgress: [true, false, 'DEFAULT'],
  availableInMCP: [false],
  binaryMode: ['separate'],
}

const MAX_TIMEOUT_MS = 366 * 86_400_000

/** The settings of an n8n workflow that Perdure has too. Reports the others. */
export function mapSettings(
  settings: Record<string, unknown>,
  report: ProblemReporter,
  findWorkflow: (id: string) => string | undefined,
): MappedSettings {
  const mapped: MappedSettings = {}
  for (const [key, value] of Object.entries(settings)) {
    if (getOwn(HARMLESS, key)?.includes(value)) continue
    const path = `settings.${key}`
    const errorWorkflowId = key === 'errorWorkflow' ? findWorkflow(String(value)) : undefined
    if (key === 'executionTimeout' && Number.isFinite(value) && Number(value) >= 1) {
      mapped.timeoutMs = Math.min(Math.round(Number(value) * 1_000), MAX_TIMEOUT_MS)
    } else if (key === 'timezone' && isTimezone(value)) mapped.timezone = value
    else if (errorWorkflowId) mapped.errorWorkflowId = errorWorkflowId
    else if (key === 'errorWorkflow') {
      const message =
        'n8n executes this workflow when an execution fails. The import does not know which workflow ' +
        'replaces it: name it in "workflows", or set errorWorkflowId.'
      report('setting', path, message, value)
    } else {
      const message =
        `Perdure has no setting like n8n's "${key}", so it was left out: check that the workflow works without ` +
        'it.'
      report('setting', path, message, value)
    }
  }
  return mapped
}

function isTimezone(value: unknown): value is string {
  if (typeof value !== 'string') return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }) !== undefined
  } catch {
    return false
  }
}
