import type { MonitoringConfig } from '../../../db/monitoring/config.ts'
import type { AlertType } from '../../../db/monitoring/notices/notices.ts'
import { detectDrift } from '../shifts/drift/drift.ts'
import { detectSentiment } from '../shifts/sentiment/sentiment.ts'
import { detectAnomalies } from './anomaly/anomalies.ts'
import type { Detector } from './detector.ts'

/** What looks for each type of alert, one detector for each. */
export const ALERT_DETECTORS: { type: AlertType; detect: Detector }[] = [
  { type: 'ANOMALY', detect: detectAnomalies },
  { type: 'DRIFT', detect: detectDrift },
  { type: 'SENTIMENT', detect: detectSentiment },
]

/** Which of a team's flags a type of alerts needs. */
const FLAGS = {
  ANOMALY: 'anomalyDetectionEnabled',
  DRIFT: 'driftAlertEnabled',
  SENTIMENT: 'sentimentTrackingEnabled',
} as const satisfies Record<AlertType, keyof MonitoringConfig>

/** Whether a team wants to be told of a type. */
export function isWanted(config: MonitoringConfig, type: AlertType): boolean {
  return config[FLAGS[type]]
}
