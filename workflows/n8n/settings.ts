import type { Complain } from './report.ts'

export type MappedSettings = { timeoutMs?: number; timezone?: string; errorWorkflowId?: string }

/** Of n8n's defaults nothing need be said. */
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

export function mapSettings(
  settings: Record<string, unknown>,
  complain: Complain,
  findWorkflow: (id: string) => string | undefined,
): MappedSettings {
  const mapped: MappedSettings = {}
  for (const [key, value] of Object.entries(settings)) {
    if (HARMLESS[key]?.includes(value)) continue
    const path = `settings.${key}`
    if (key === 'executionTimeout' && Number.isFinite(value) && Number(value) >= 1) {
      mapped.timeoutMs = Math.min(Math.round(Number(value) * 1_000), 366 * 86_400_000)
    } else if (key === 'timezone' && isTimezone(value)) mapped.timezone = value
    else if (key === 'errorWorkflow' && findWorkflow(String(value))) {
      mapped.errorWorkflowId = findWorkflow(String(value))!
    } else if (key === 'errorWorkflow') {
      complain(
        'setting',
        path,
        'Name in "workflows" which workflow here stands for it, or set errorWorkflowId',
        value,
      )
    } else complain('setting', path, 'There is no such setting', value)
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
