/** How far the browser's clock is ahead of the service's. */
let aheadMs = 0

/** Smaller differences come from the network, and from the header's whole seconds. */
const LEAST_MS = 60_000

/** Reads the service's clock from an answer. */
export function readClock(answer: Response): void {
  const at = Date.parse(answer.headers.get('date') ?? '')
  if (Number.isNaN(at)) return
  const ahead = Date.now() - at
  aheadMs = Math.abs(ahead) < LEAST_MS ? 0 : ahead
}

/** Now as the service has it: people's clocks may be wrong by hours, and what is "of the last day" is not. */
export function serverNow(): number {
  return Date.now() - aheadMs
}
