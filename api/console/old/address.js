/** Where the console is: its page and what narrows it, both after the # of the address. */
export function readAddress() {
  const [path = '', query = ''] = location.hash.slice(1).split('?')
  return { path, query: new URLSearchParams(query) }
}

/** The address of a page with these parts of a query; empty ones are left out. @param {string} path @param {Record<string, string | number | undefined>} query */
export function linkWith(path, query) {
  const kept = Object.entries(query).flatMap(([key, value]) => {
    return value === undefined || value === '' || (key === 'page' && value === 0)
      ? []
      : [[key, String(value)]]
  })
  const text = new URLSearchParams(kept).toString()
  return text ? `#${path}?${text}` : `#${path}`
}

/** A number out of the address. @param {string | null} text */
export function readPage(text) {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) : 0
}
