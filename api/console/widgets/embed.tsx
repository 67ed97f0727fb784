import { Button } from '../kit/controls/button.tsx'
import { CopyButton } from '../kit/controls/copy.tsx'
import { Dialog } from '../kit/overlays/dialog.tsx'
import { type Widget, writeFrame, writeSnippet } from './data.ts'

/** How a widget comes onto a page. */
export function EmbedDialog({ widget, onClose }: { widget: Widget; onClose: () => void }) {
  const snippet = writeSnippet(widget.key)
  const frame = writeFrame(widget.key)
  return (
    <Dialog open wide onClose={onClose} title={`Embed ${widget.name}`}>
      <div className="stack">
        <p>
          Put this at the end of each page that is to show the widget. It works on the allowed pages only.
        </p>
        <p className="panel">
          <code>{snippet}</code>
        </p>
        <div className="row">
          <CopyButton text={snippet} label="Copy the snippet" named />
        </div>
        <p>Or show the chat in a frame of the page:</p>
        <p className="panel">
          <code>{frame}</code>
        </p>
        <div className="row">
          <CopyButton text={frame} label="Copy the frame" named />
        </div>
        <div className="row">
          <span className="quiet">Key</span>
          <code>{widget.key}</code>
          <CopyButton text={widget.key} label="Copy the key" />
        </div>
        <div className="actions">
          <Button onClick={onClose}>Close</Button>
        </div>
      </div>
    </Dialog>
  )
}
