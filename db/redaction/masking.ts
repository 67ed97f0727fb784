import { changeInstance } from '../change.ts'
import { json } from '../connection.ts'
import { type PersonalKind, PII_KINDS } from '../detection/pii/kinds.ts'
import { demandInstance, type Scope } from '../scope.ts'
import { describeChange } from './difference.ts'
import { forgetRules, loadMasking, type MaskingSettings } from './rules.ts'

type Patch = {
  [K in Exclude<keyof MaskingSettings, 'updatedAt' | 'detectors'>]?: MaskingSettings[K] | undefined
} & {
  detectors?: { [K in PersonalKind]?: boolean | undefined } | undefined
}

/** Reads the masking settings of the instance. Throws FORBIDDEN unless for the instance's admin. */
export async function readMasking(scope: Scope): Promise<MaskingSettings> {
  demandInstance(scope)
  return loadMasking(scope.store.db)
}

/**
 * Changes the given settings and keeps the others. They apply from the next export and audit entry on, in
 * other processes after 5 s at most. Throws FORBIDDEN unless for the instance's admin.
 */
export async function updateMasking(scope: Scope, patch: Patch): Promise<MaskingSettings> {
  const changed = await changeInstance(scope, 'MASKING_UPDATED', async (tx) => {
    await tx.selectFrom('masking').select('one').forUpdate().execute()
    const old = await loadMasking(tx)
    const { detectors, style = old.style, patterns = old.patterns, keys = old.keys } = patch
    const kinds = PII_KINDS.map((kind) => [kind, detectors?.[kind] ?? old.detectors[kind]])
    const settings = { detectors: Object.fromEntries(kinds), style, patterns, keys }
    const updatedAt = new Date()
    await tx
      .updateTable('masking')
      .set({ settings: json(settings), updatedAt })
      .execute()
    const result = { ...settings, updatedAt } as MaskingSettings
    return {
      result,
      resourceId: null,
      details: { ...describe(result), ...describeChange(describe(old), describe(result)) },
    }
  })
  forgetRules(scope.store.db)
  return changed
}

// For the audit entry: only the names of the patterns, since a pattern may give away what it hides.
function describe({ detectors, style, patterns, keys }: MaskingSettings) {
  return { detectors, style, patterns: patterns.map(({ name }) => name), keys: keys.length }
}
