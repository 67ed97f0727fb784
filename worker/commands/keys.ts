import { KEY_PLACES, type KeyPlace, type KeyUse, listKeyUse, rotateKeys } from '../../db/operation/keyuse.ts'
import type { Store } from '../../db/scope.ts'
import type { Config } from '../config.ts'
import { asOperator, createOperatorScope } from './operator.ts'

const NAMES: Record<KeyPlace, string> = {
  outputs: 'outputs',
  requests: 'sent requests',
  pages: 'pages',
  files: 'pieces of files',
  messages: 'sent messages',
  callbacks: 'callbacks',
  channels: 'notification channels',
  examples: 'saved examples',
  memory: 'remembered turns',
  staticData: 'static data',
  audit: 'audit entries',
}

const UNKNOWN =
  'Not counted, because only Temporal and the callers have them: values of executions in Temporal (until their histories ' +
  'are removed there), sessions (12 h), and the URLs that resume waiting executions.'

/** `keys show`: prints a line for each key: whether it is here, and how much is sealed or signed with it. */
export async function runKeysShow(config: Config): Promise<void> {
  await asOperator(config, showKeys, { anyKeys: true })
}

async function showKeys(store: Store): Promise<void> {
  const uses = await listKeyUse(store)
  for (const use of uses) {
    const state = use.current ? 'current' : STATES[use.here]
    console.log(`${use.id.padEnd(8)}  ${state.padEnd(7)}  ${describeUse(use)}`)
    if (use.current && use.here === 'other') process.exitCode = 1
  }
  console.log(UNKNOWN)
  for (const { id, here, credentials } of uses) {
    if (here === 'other') console.log(`${id} has other bytes here than the key that was used under this id.`)
    if (here === 'no' && credentials > 0)
      console.log(`${id} is missing here: the service cannot start without it.`)
    if (here === 'other' || (here === 'no' && credentials > 0)) process.exitCode = 1
  }
}

const STATES = { yes: 'opens', no: 'absent', other: 'WRONG' }

/**
 * `keys rotate`: wraps every credential with the current key anew. The exit code is 1 if one could not be opened, or
 * if some are still sealed with another key.
 */
export async function runKeysRotate(config: Config): Promise<void> {
  await asOperator(config, async (store) => {
    const { current } = store.keys
    const { rewrapped, closed } = await rotateKeys(createOperatorScope(store), (done) =>
      console.log(`${done} credentials are wrapped with ${current} anew`),
    )
    const uses = await listKeyUse(store)
    const { credentials = 0 } = uses.find((use) => use.current) ?? {}
    console.log(`${rewrapped} credentials were wrapped with ${current} anew; ${credentials} are now`)
    for (const id of closed) console.error(`The credential ${id} cannot be opened, so it was left as it is`)
    for (const use of uses.filter((use) => !use.current && use.here !== 'no')) describeOld(use)
    if (uses.some((use) => !use.current && use.here !== 'no')) console.log(UNKNOWN)
    if (closed.length > 0 || uses.some((use) => !use.current && use.credentials > 0)) process.exitCode = 1
  })
}

function describeOld(use: KeyUse): void {
  const late =
    use.credentials > 0
      ? ' (processes may still have it as their first key: start them anew, and rotate again)'
      : ''
  console.log(`${use.id} is still needed by ${describeUse(use)}${late}`)
}

function describeUse({ credentials, others }: KeyUse): string {
  const counts = KEY_PLACES.map((place) => `${others[place] ?? 'uncounted'} ${NAMES[place]}`)
  return [`${credentials} credentials`, ...counts].join(', ')
}
