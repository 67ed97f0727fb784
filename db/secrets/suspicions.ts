import type { GraphNode } from '../../workflows/graph/graph.ts'
import { HIDDEN, listSecrets } from '../../workflows/graph/secrets.ts'
import { joinPath, type Path, type Problem } from '../../workflows/problem.ts'
import { isSecretName } from '../../workflows/secrets/secretnames.ts'
import type { Work } from '../../workflows/turns.ts'
import { findSecrets, type Pii } from '../redaction/detect.ts'

/** The most warnings of one graph, and what looking at a node and at a character takes, in units of work. */
const MAX_SUSPICIONS = 20
const NODE_WORK = 10
const CHARACTER_WORK = 0.25

const MAX_DEPTH = 64

/** A longer text is looked at in pieces of this length, which overlap. */
const PIECE = 60_000
const OVERLAP = 2_000

const NO_PII: Pii = { kinds: new Set(), mask: (text) => text }

/** An expression that only names where a value comes from. */
const REFERENCE = /\{\{\s{0,20}\$[\w$.[\]]{1,200}\s{0,20}\}\}/g

/**
 * Warns of texts in configs that look like secrets, wherever they are: keys and tokens with a known form, and what the
 * body of a request has under the name of a secret. `told` are the paths about which more is known.
 */
export function* suspectSecrets(nodes: GraphNode[], told: ReadonlySet<string>): Work<Problem[]> {
  const found: Problem[] = []
  for (const [at, node] of nodes.entries()) {
    yield NODE_WORK
    // A save moves these into credentials.
    const moved = new Set(listSecrets(node).map((path) => path.join()))
    for (const [path, text] of listTexts(node.config)) {
      if (found.length === MAX_SUSPICIONS) return found
      const name = path.reduce<string>(joinPath, `nodes[${at}].config`)
      if (told.has(name) || moved.has(path.join()) || text.includes(HIDDEN)) continue
      const isNamed =
        node.type === 'HTTP_REQUEST' &&
        path[0] === 'body' &&
        !text.includes('{{') &&
        text !== '' &&
        isSecretName(String(path.at(-1)))
      if (isNamed || (yield* looksSecret(text))) found.push({ path: name, message: MESSAGE })
    }
  }
  return found
}

const MESSAGE = 'looks like a secret: everybody who may read the workflow sees it. Keep it in a credential'

function* looksSecret(text: string): Work<boolean> {
  for (let from = 0; from === 0 || from + OVERLAP < text.length; from += PIECE - OVERLAP) {
    const piece = text.slice(from, from + PIECE)
    yield Math.ceil(piece.length * CHARACTER_WORK)
    const plain = piece.replace(REFERENCE, ' ')
    if (findSecrets(plain, NO_PII, () => false) !== plain) return true
  }
  return false
}

/** The texts of a config with their paths, down to MAX_DEPTH. */
function* listTexts(config: Record<string, unknown>): Generator<[Path, string], void, void> {
  const open: [Path, unknown][] = [[[], config]]
  for (const [path, value] of open) {
    if (typeof value === 'string') yield [path, value]
    if (typeof value !== 'object' || value === null || path.length === MAX_DEPTH) continue
    const isList = Array.isArray(value)
    for (const [key, item] of Object.entries(value)) open.push([[...path, isList ? Number(key) : key], item])
  }
}
