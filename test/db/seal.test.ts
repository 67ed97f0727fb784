import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { type Keys, seal, unseal } from '../../db/seal.ts'

const keys: Keys = { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) }
/** Where the nonce is in an envelope, after the version and the id of the key. */
const NONCE = [9, 21] as const

const nonceOf = (sealed: Uint8Array) => Buffer.from(sealed.slice(...NONCE)).toString('hex')

test('no two seals have the same nonce, in no thread, and each opens with its own', async () => {
  const sealed = Array.from({ length: 3_000 }, (_, i) => seal(keys, 'test', 'place', Buffer.from(`${i}`)))
  const opened = sealed.map((one) => unseal(keys, 'test', 'place', one).toString())
  expect(opened).toEqual(sealed.map((_, i) => `${i}`))
  const others = await Promise.all([sealInThread(), sealInThread()])
  const nonces = [...sealed, ...others.flat()].map(nonceOf)
  expect(new Set(nonces).size).toBe(5_000)
})

function sealInThread(): Promise<Uint8Array[]> {
  const script = `import { parentPort } from 'node:worker_threads'
    const { seal } = await import(${JSON.stringify(new URL('../../db/seal.ts', import.meta.url).href)})
    const keys = { current: 'k1', byId: new Map([['k1', Buffer.alloc(32, 1)]]) }
    parentPort.postMessage(Array.from({ length: 1_000 }, () => seal(keys, 'test', 'place', Buffer.from('x'))))`
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`))
  return new Promise((resolve, reject) => {
    thread.once('message', resolve)
    thread.once('error', reject)
  }).finally(() => thread.terminate()) as Promise<Uint8Array[]>
}
