import type { Finding } from '../spans.ts'
import { findAssigned } from './assignments.ts'
import { findJwts } from './jwt.ts'
import { findNamedKeys } from './namedkeys.ts'
import { findPlaced, findPrivateKeys } from './structures.ts'
import { findVendorKeys } from './vendorkeys.ts'

/**
 * Everything in a text that is or may be a secret: keys with the form of a vendor, private keys, JSON Web Tokens,
 * values at the places of secrets, random values that a word before them calls a key, and values that are assigned to a
 * secret's name, as `isSecretName` tells. A confidence under 0.5 is doubtful: a placeholder of some documentation, or a
 * beginning without the documented rest. The findings may overlap.
 * Takes time linear in the length of the text: a match can only begin at the start of a sequence of its characters (the
 * lookbehinds ensure that), or its repetitions are bounded.
 */
export function findSecretSpans(
  text: string,
  isSecretName: (name: string) => boolean,
): Finding<'api_key' | 'jwt'>[] {
  return [
    ...findPrivateKeys(text),
    ...findJwts(text),
    ...findVendorKeys(text),
    ...findPlaced(text),
    ...findNamedKeys(text),
    ...findAssigned(text, isSecretName),
  ]
}
