import type { Finding } from '../spans.ts'
import { findAssigned } from './assignments.ts'
import { findJwts } from './jwt.ts'
import { findNamedKeys } from './namedkeys.ts'
import { findPlaced, findPrivateKeys } from './structures.ts'
import { findVendorKeys } from './vendorkeys.ts'

/**
 * Everything in a text that is or may be a secret: keys with the form of a vendor, private keys, JSON Web Tokens, what
 * stands where secrets stand, what a machine has drawn and a word before it calls a key, and what is assigned to a name
 * of which `isSecretName` says that it is a secret's. A confidence under 0.5 is doubtful: a stand-in of some documentation,
 * or a beginning without the documented rest. The findings may overlap.
 * Takes time linear in the length of the text: a match can only begin at the start of a sequence of its characters
 * (that is what the lookbehinds do), or its repetitions are bounded.
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
