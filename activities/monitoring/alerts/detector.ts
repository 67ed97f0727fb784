import type { Db } from '../../../db/connection.ts'
import type { WindowFinding } from '../../../db/monitoring/alerts/noting.ts'
import type { MonitoringConfig } from '../../../db/monitoring/config.ts'
import type { AlertType } from '../../../db/monitoring/notices/notices.ts'

/** What a detector looks at: an hour (UTC) of a team that has just ended, and whatever came before it. */
export type DetectorInput = {
  db: Db
  teamId: string
  config: MonitoringConfig
  window: { from: Date; to: Date }
  signal: AbortSignal
}

export type AlertFinding = WindowFinding & { type: AlertType }

/**
 * How a metric of a workflow, or with null of the team, was in the hour. FIRING without a finding keeps an alert that is
 * there, and opens none. INSUFFICIENT_DATA has its reason.
 */
export type DetectorVerdict = {
  metric: string
  workflowId: string | null
  state: 'FIRING' | 'QUIET' | 'INSUFFICIENT_DATA'
  finding?: AlertFinding
  reason?: string
}

/** Judges an hour of a team. What it throws is a reason to ask it again. */
export type Detector = (input: DetectorInput) => Promise<DetectorVerdict[]>
