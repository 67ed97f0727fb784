/**
 * Watches how long this thread is at work without others getting their turn: `stop` answers the longest stretch in
 * milliseconds of its own CPU time, to which other programs on the machine add nothing.
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
