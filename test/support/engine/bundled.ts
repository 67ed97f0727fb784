import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { WorkflowBundleOption } from '@temporalio/worker'

/**
 * Preloaded into programs that tests start (process.ts): they take the bundle of workflows that the suite has made
 * already, in the file BUNDLE, instead of making one each, which takes 1.6 s of processor time. Versioned workers make
 * their own.
 */
const OWN = new URL('../../../worker/engine/bundle.ts', import.meta.url).href
const { BUNDLE } = process.env
let real: typeof import('../../../worker/engine/bundle.ts') | undefined

export const VERSIONED_ENTRY = fileURLToPath(new URL('../../../workflows/run/versioned.ts', import.meta.url))

export async function bundleWorkflows(workflowsPath?: string): Promise<WorkflowBundleOption> {
  if (!workflowsPath) return { codePath: BUNDLE! }
  real ??= await import('../../../worker/engine/bundle.ts')
  return real.bundleWorkflows(workflowsPath)
}

if (BUNDLE)
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const found = nextResolve(specifier, context)
      return found.url === OWN && context.parentURL !== import.meta.url
        ? { ...found, url: import.meta.url }
        : found
    },
  })
