import { decideExposure } from '../../db/operation/exposure.ts'
import type { Config } from '../config.ts'
import { asOperator, createOperatorScope } from './operator.ts'

/**
 * `exposure open`: opens in all processes the parts that a request through a proxy has closed, and keeps them open.
 * Parts that settings have closed stay closed.
 */
export async function runExposureOpen(config: Config): Promise<void> {
  const isNew = await asOperator(config, (store) => decideExposure(createOperatorScope(store), true))
  console.log(isNew ? 'Requests through a proxy close nothing from now on' : 'This was decided already')
  console.log(
    'Whoever reaches the proxy can sign up, and let workflows call this machine, where these are open by default. ' +
      '`npx perdure exposure close` takes it back',
  )
}

/** `exposure close`: takes back what `exposure open` has decided; processes that a proxy has reached close at once. */
export async function runExposureClose(config: Config): Promise<void> {
  const isNew = await asOperator(config, (store) => decideExposure(createOperatorScope(store), false))
  console.log(
    isNew
      ? 'A request through a proxy closes again what is open by default, and what one has closed before is closed now'
      : 'Nothing was opened by `npx perdure exposure open`',
  )
}
