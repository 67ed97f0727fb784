/** Gives every n8n node an id that is close to its name and needs no backticks in expressions. */
export function nameNodes(names: string[]): Map<string, string> {
  const taken = new Set<string>()
  return new Map(
    names.map((name) => {
      const wanted = writeId(name)
      let id = wanted
      for (let i = 2; taken.has(id); i++) id = `${wanted}_${i}`
      taken.add(id)
      return [name, id]
    }),
  )
}

// A graph refuses some of these words as ids; others are keys of the lists that nodes output.
const RESERVED = new Set(['constructor', 'prototype', 'items', 'from', 'handles'])

function writeId(name: string): string {
  const plain = name
    .replace(/[^A-Za-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, 60)
  const isAllowed = /^[A-Za-z]/.test(plain) && !RESERVED.has(plain)
  return isAllowed ? plain : `node_${plain}`
}
