import { afterAll } from 'vitest'
import { createHttpClient, type HttpClient } from '../../../../activities/http/http.ts'
import { askModel, type ModelAsk } from '../../../../activities/models/ask.ts'
import type { UsageMeter } from '../../../../activities/models/meter.ts'
import type { NodeContext } from '../../../../activities/nodes/kit/node.ts'
import type { OpenedCredential } from '../../../../db/credentials/open.ts'
import { listSecretValues } from '../../../../db/credentials/open.ts'
import type { CredentialData } from '../../../../db/credentials/seal.ts'
import type { CredentialType } from '../../../../db/credentials/types.ts'
import { LOCAL } from '../loopback.ts'

/** A call as the meter was told of it. `outcome` is undefined while it is under way. */
type MeteredCall = Parameters<UsageMeter['begin']>[0] & {
  outcome?: Parameters<Awaited<ReturnType<UsageMeter['begin']>>['end']>[0]
}

/** Asks models outside of runs, with a meter that keeps what it is told. Every call costs a dollar. */
export function useModels(http: HttpClient = createHttpClient(LOCAL)) {
  afterAll(() => http.close())
  const metered: MeteredCall[] = []
  const state = { priced: true }

  const meter: UsageMeter = {
    isPriced: async () => state.priced,
    estimate: async () => 1,
    readEarlier: async () => ({ tokens: 0, cost: 0, lost: 0 }),
    async begin(call) {
      const one: MeteredCall = { ...call }
      metered.push(one)
      return {
        async end(outcome) {
          one.outcome = outcome
          return outcome.usage ? 1 : null
        },
      }
    },
  }

  function contextOf(
    type: CredentialType,
    data: CredentialData,
    more: Partial<NodeContext> = {},
  ): NodeContext {
    const opened: OpenedCredential = {
      ...{ id: 'credential', teamId: 'team', name: 'mine', type, data },
      ...{ revision: 1, expiresAt: null, broken: null },
    }
    const secrets = listSecretValues(opened)
    const credentials = {
      open: async () => opened,
      tell: (secret: string) => void secrets.push(secret),
      secrets: () => secrets,
    }
    return {
      http,
      credentials,
      meter,
      signal: new AbortController().signal,
      ...more,
    } as unknown as NodeContext
  }

  return {
    metered,
    state,
    meter,
    contextOf,
    /** Asks with a credential of this type and data. */
    ask(
      type: CredentialType,
      data: CredentialData,
      request: ModelAsk['request'],
      more: Partial<Omit<ModelAsk, 'request'>> & { context?: Partial<NodeContext> } = {},
    ) {
      const { context, ...rest } = more
      return askModel(contextOf(type, data, context), {
        credentialId: 'credential',
        model: 'demo',
        request,
        ...rest,
      })
    },
  }
}
