import { createHash } from 'node:crypto'
import { isObject } from '../../../workflows/json.ts'
import { readFileValue } from '../../files/files.ts'
import { NodeFailure } from '../../nodes/kit/failure.ts'
import { demandFiles } from '../../nodes/kit/files.ts'
import type { NodeContext } from '../../nodes/kit/node.ts'
import type { Maker } from './maker.ts'

/** What the actions of GitHub work out. */
export const GITHUB_MAKERS: Record<string, Maker> = {
  githubContent: makeContent,
  githubWritten: recognise,
  githubFolder: demandWhole,
}

/** The most bytes of a file that is committed: it is held in memory, and GitHub takes not much more. */
const MAX_BYTES = 25 * 1024 * 1024

type Content = { text?: string | null; base64?: string | null; file?: unknown }

/** The content of a file in Base64, and the id that Git gives it. */
async function makeContent(content: Content, context: NodeContext): Promise<object> {
  const bytes = await readContent(content, context)
  const sha = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
  return { base64: Buffer.from(bytes).toString('base64'), sha }
}

async function readContent({ text, base64, file }: Content, context: NodeContext): Promise<Uint8Array> {
  const found = file === null || file === undefined ? undefined : readFileValue(file)
  if (found) return (await demandFiles(context).open(found)).read(MAX_BYTES)
  if (typeof base64 === 'string') return Buffer.from(base64, 'base64')
  if (typeof text === 'string') return Buffer.from(text)
  throw new NodeFailure('input: must have text, base64 or file', { type: 'InvalidInput' })
}

type Commit = Record<string, unknown> & { commit?: object }

/**
 * What GitHub would have answered to a commit whose answer was lost. Throws a NodeFailure (OutcomeUnknown) if the file is
 * not as it would be then: another commit may have come after it, or in its place.
 */
function recognise({ there, commits, sha }: { there: unknown; commits: unknown; sha: string }): object {
  if (!isObject(there) || there.sha !== sha)
    throw new NodeFailure(
      'No answer came to a commit, and the file is not what it would have made of it: look there before it is done again',
      { type: 'OutcomeUnknown' },
    )
  const [last] = (Array.isArray(commits) ? commits : []) as Commit[]
  if (!last) return { content: there, commit: null }
  const { sha: id, node_id, html_url, parents, commit } = last
  return { content: there, commit: { sha: id, node_id, html_url, parents, ...commit } }
}

/** The most entries of a folder that GitHub lists. */
const MAX_ENTRIES = 1_000

function demandWhole({ entries }: { entries: unknown }): unknown {
  if (!Array.isArray(entries) || entries.length < MAX_ENTRIES) return entries
  throw new NodeFailure(
    `GitHub lists only the first ${MAX_ENTRIES} entries of a folder, and this one has as many`,
    {
      type: 'OutputTooLarge',
    },
  )
}
