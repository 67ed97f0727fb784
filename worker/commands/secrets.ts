import { type MovedVersions, moveStoredSecrets } from '../../db/secrets/olderversions.ts'
import type { Config } from '../config.ts'
import { asOperator } from './operator.ts'

/** `secrets move`: moves the secrets that are written into stored graphs into credentials. */
export async function runSecretsMove(config: Config): Promise<void> {
  const moved = await asOperator(config, (store) => moveStoredSecrets(store))
  for (const line of describeMoved(moved)) console.log(line)
  if (moved.failed.length > 0) process.exitCode = 1
}

/** The result of a move, in lines for people. */
export function describeMoved({ versions, credentials, failed }: MovedVersions): string[] {
  return [
    `Looked at ${versions} versions of workflows, and moved their secrets into ${credentials} new credentials`,
    ...failed.map(
      ({ workflowId, error }) => `Not moved, and left as it was: ${workflowId}: ${(error as Error).message}`,
    ),
  ]
}
