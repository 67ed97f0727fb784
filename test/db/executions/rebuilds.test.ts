import { expect, test } from 'vitest'
import { INSTANCE_CHAIN } from '../../../db/audit/signing.ts'
import { auditRebuild } from '../../../db/executions/rebuilds.ts'
import { serviceScope } from '../../../db/scope.ts'
import { createOperatorScope } from '../../../worker/commands/operator.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService())
const { entries } = makeChains(service)

test('that the operator has rows rebuilt is an entry of the instance, with who it was on which machine', async () => {
  const scope = createOperatorScope(service.store)
  const id = crypto.randomUUID()
  await auditRebuild(scope, id)
  await auditRebuild(scope, null)
  await auditRebuild(scope, 'no id')
  const told = (await entries(INSTANCE_CHAIN)).slice(-3)
  expect(told.map(({ action, resourceId, details }) => ({ action, resourceId, details }))).toEqual([
    { action: 'EXECUTIONS_REBUILT', resourceId: id, details: {} },
    { action: 'EXECUTIONS_REBUILT', resourceId: null, details: { all: true } },
    { action: 'EXECUTIONS_REBUILT', resourceId: null, details: {} },
  ])
  expect(told[0]!.actorName).toMatch(/^cli \(\S+@\S+\)$/)
  const user = serviceScope(service.store, { kind: 'USER', id: service.user.id, name: 'Grace' }, [])
  await expect(auditRebuild(user, id)).rejects.toMatchObject({ code: 'FORBIDDEN' })
})
