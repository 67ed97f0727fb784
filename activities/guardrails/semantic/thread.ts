import { parentPort } from 'node:worker_threads'
import { standBehind, type ThreadMessage } from '../../threads.ts'
import { compareText, embedText } from './compare.ts'
import { loadEmbedder } from './embedder.ts'
import type { SemanticJob, SemanticResult } from './messages.ts'

/** The program of a thread that compares the meanings of texts, one text at a time. */

standBehind()

const port = parentPort!
const tell = (message: ThreadMessage<SemanticResult>) => port.postMessage(message)
const embed = await loadEmbedder()

port.on('message', async (job: SemanticJob) => {
  const began = performance.now()
  const took = () => performance.now() - began
  try {
    tell({ ...(await carryOut(job)), ms: took() })
  } catch (error) {
    // Its message might quote the text.
    const name = error instanceof Error ? error.name : 'unknown'
    tell({ ms: took(), error: `The comparison failed (${name})` })
  }
  tell('done')
})
tell('ready')

async function carryOut({ similar, embedding }: SemanticJob): Promise<Omit<SemanticResult, 'ms'>> {
  if (similar) return { similar: await compareText(embed, similar.text, similar.exemplars) }
  return { embedding: await embedText(embed, embedding.text) }
}
