import * as v from 'valibot'
import { openPause, type Pause, readPause } from '../../db/executions/waits/pauses.ts'
import { saveFormEnding } from '../../db/forms/pages.ts'
import { cleanText } from '../../db/text.ts'
import { formSchema } from '../../workflows/graph/form.ts'
import { completionField, readRedirect } from '../../workflows/nodes/forms.ts'
import { waitLimitField } from '../../workflows/nodes/pauses.ts'
import { renderKey, renderText } from './kit/config.ts'
import { invalidConfig } from './kit/failure.ts'
import type { NodeContext, NodeResult, NodeRunner } from './kit/node.ts'
import { demandPause, keepWaiting } from './kit/pauses.ts'

/** FORM: shows a page, and waits until it is sent; or notes the last page, and passes its input on. */
export const runForm: NodeRunner = async (context) => {
  const { spot, config, input } = context
  if (config.completion !== undefined) {
    const ending = await renderKey(context, 'completion', completionField)
    if (ending.show === 'redirect' && readRedirect(ending.url!) === undefined)
      throw invalidConfig('completion.url', 'must begin with https://, and name no user')
    await saveFormEnding(spot.store, spot, ending)
    return { output: input }
  }
  const wanted = {
    kind: 'FORM' as const,
    form: {
      form: await renderKey(context, 'form', formSchema),
      title: await renderWords(context, 'title'),
      description: await renderWords(context, 'description'),
      button: await renderWords(context, 'button'),
    },
    timeoutMs: (await renderKey(context, 'timeoutMs', v.optional(waitLimitField))) ?? null,
  }
  return leave(context, await openPause(spot.store, spot, wanted))
}

/** Looks again at a FORM, after a nudge or a timeout. */
export const resumeForm: NodeRunner = async (context) =>
  leave(context, await readPause(context.spot.store, context.spot))

async function renderWords(context: NodeContext, key: string): Promise<string | null> {
  return context.config[key] === undefined ? null : cleanText(await renderText(context, key))
}

/** If the page was not sent in time, the input is passed on by the handle `timeout`. */
function leave({ input }: NodeContext, pause: Pause | undefined): NodeResult {
  const { status, data, leftMs } = demandPause(pause)
  if (status === 'OPEN') return keepWaiting(leftMs)
  return status === 'EXPIRED' ? { output: input, handle: 'timeout' } : { output: data }
}
