import type { ReactNode } from 'react'
import './states.css'

export type Tone = 'good' | 'bad' | 'busy' | 'warn'

const LOOKS: Record<string, { text: string; path: string; tone?: Tone }> = {
  PENDING: { text: 'Pending', path: 'M6 3.2V6l1.8 1.2', tone: 'warn' },
  RUNNING: { text: 'Running', path: 'M6 2a4 4 0 1 1-4 4', tone: 'busy' },
  SUCCESS: { text: 'Success', path: 'M3.2 6.2 5.2 8.2 8.8 4.2', tone: 'good' },
  FAILED: { text: 'Failed', path: 'M4 4l4 4m0-4L4 8', tone: 'bad' },
  CANCELLED: { text: 'Cancelled', path: 'M3.5 6h5', tone: 'warn' },
}

export const STATUSES = ['PENDING', 'RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED'] as const

/** Whether an execution or a node goes on. */
export function isOpen(status: string): boolean {
  return status === 'PENDING' || status === 'RUNNING'
}

/** The name of a status as people read it. */
export function nameStatus(status: string): string {
  return LOOKS[status]?.text ?? status
}

/** A constant of the API as people read it: SUB_WORKFLOW is "Sub workflow". */
export function nameConstant(constant: string): string {
  if (constant === 'API') return constant
  const words = constant.toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

type SignProps = { status: string; size?: number; x?: number; y?: number }

/** The shape of a status alone, where its word is shown elsewhere; `x` and `y` place it in a drawing. */
export function StatusSign({ status, size = 14, x, y }: SignProps) {
  const look = LOOKS[status]
  if (!look) return null
  const place = x === undefined ? {} : { x, y }
  return (
    <svg
      {...place}
      viewBox="0 0 12 12"
      width={size}
      height={size}
      className={`sign ${look.tone ?? ''}`}
      data-status={status}
      aria-hidden="true"
    >
      <path d={look.path} />
    </svg>
  )
}

/** The status of an execution or a node, by shape, word and colour. */
export function StatusBadge({ status }: { status: string | null }) {
  if (!status) return <span className="quiet">Never ran</span>
  const look = LOOKS[status]
  return (
    <span className={`pill ${look?.tone ?? ''}`} data-status={status}>
      {look && (
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d={look.path} />
        </svg>
      )}
      {look?.text ?? status}
    </span>
  )
}

/** A short word in a colour. */
export function Pill({
  tone,
  title,
  children,
}: {
  tone?: Tone | undefined
  title?: string
  children: ReactNode
}) {
  return (
    <span className={`pill ${tone ?? ''}`} title={title}>
      {children}
    </span>
  )
}
