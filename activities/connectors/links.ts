/** The address with the relation `next` in a header Link (RFC 8288). Linear in the header's length. */
export function findNextLink(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  for (const part of header.split(/,(?=\s*<)/)) {
    const end = part.indexOf('>')
    const start = part.indexOf('<')
    if (start < 0 || end < start) continue
    const rels = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(part.slice(end))
    const names = (rels?.[1] ?? rels?.[2] ?? '').toLowerCase().split(/\s+/)
    if (names.includes('next')) return part.slice(start + 1, end)
  }
  return undefined
}
