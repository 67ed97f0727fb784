/** Whether JSON nests arrays and objects more than `max` levels deep. Works without recursion. */
export function isDeeper(text: string, max: number): boolean {
  // A level takes at least two characters.
  if (text.length <= 2 * max) return false
  let depth = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (quoted) {
      if (code === 0x5c) i++
      else if (code === 0x22) quoted = false
    } else if (code === 0x22) quoted = true
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > max) return true
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return false
}
