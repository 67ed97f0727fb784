import { KeysDialog } from '../kit/overlays/keys.tsx'
import { KEYS } from './keys.ts'

/** Which keys the canvas knows. */
export function HelpDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  return <KeysDialog open={open} onClose={onClose} title="Keys of the canvas" keys={KEYS} />
}
