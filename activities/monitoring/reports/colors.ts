/** The colors of a report: they are told apart by those who do not see red and green, and stand on white. */
export const COLORS = {
  first: '#2563eb',
  second: '#f59e0b',
  ink: '#1f2933',
  muted: '#5b6775',
  line: '#e3e8ee',
  paper: '#f4f6f9',
} as const

export const ALERT_COLORS = {
  LOW: '#94a3b8',
  MEDIUM: '#eab308',
  HIGH: '#ea580c',
  CRITICAL: '#9f1239',
} as const
