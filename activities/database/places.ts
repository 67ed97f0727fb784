/** How many connections to databases a team may have at once in a process. */
const CONNECTIONS_PER_TEAM = 10

type Line = { taken: number; waiting: (() => void)[] }

const lines = new Map<string, Line>()

/** Waits for one of the team's places. Resolves with the function that frees it; rejects if the signal is aborted. */
export async function takePlace(
  team: string,
  signal: AbortSignal,
  most = CONNECTIONS_PER_TEAM,
): Promise<() => void> {
  signal.throwIfAborted()
  const line = lines.get(team) ?? { taken: 0, waiting: [] }
  lines.set(team, line)
  if (line.taken < most) line.taken++
  else
    await new Promise<void>((resolve, reject) => {
      const go = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        line.waiting = line.waiting.filter((one) => one !== go)
        reject(signal.reason)
      }
      line.waiting.push(go)
      signal.addEventListener('abort', leave, { once: true })
    })
  let isFree = false
  return () => {
    if (isFree) return
    isFree = true
    // The next one in the line takes the place over.
    const next = line.waiting.shift()
    if (next) next()
    else if (--line.taken === 0) lines.delete(team)
  }
}
