/** Begins to measure processor time of this thread: what else this machine does must not count. */
export function startStopwatch(limitMs: number): { isOver(): boolean; spentMs(): number } {
  const began = performance.now()
  const before = readCpuMs()
  // The clock is read faster, and processor time never passes faster than it.
  return {
    isOver: () => performance.now() - began > limitMs && readCpuMs() - before > limitMs,
    spentMs: () => readCpuMs() - before,
  }
}

function readCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
