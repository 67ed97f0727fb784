/**
 * Watches how long this thread works without returning to its event loop. `stop` returns the longest stretch
 * in milliseconds of the thread's own CPU time, to which other programs on the machine add nothing.
 */
export function watchThread(): { stop(): number } {
  let last = process.threadCpuUsage()
  let longest = 0
  const tick = () => {
    const { user, system } = process.threadCpuUsage(last)
    longest = Math.max(longest, (user + system) / 1_000)
    last = process.threadCpuUsage()
  }
  const timer = setInterval(tick, 5)
  return {
    stop() {
      clearInterval(timer)
      tick()
      return longest
    },
  }
}
