import {
  acceptCompletion,
  autocompletion,
  closeCompletion,
  completionKeymap,
  moveCompletionSelection,
  selectedCompletion,
  startCompletion,
} from '@codemirror/autocomplete'
import { type EditorState, type Extension, Prec, StateEffect, StateField } from '@codemirror/state'
import { type Command, EditorView, keymap } from '@codemirror/view'

const choose = StateEffect.define<null>()

/** Whether the user has asked for the list of completions, or moved in it, since the text was changed last. */
const chosen = StateField.define<boolean>({
  create: () => false,
  update: (before, { docChanged, effects }) =>
    !docChanged && (before || effects.some((effect) => effect.is(choose))),
})

/** Whether completions are asked for where no name is being typed. What follows on the keyboard ends that. */
export function isAsked(state: EditorState): boolean {
  return state.field(chosen, false) ?? false
}

const WORD = /(?:`[^`]*|[\w$]*)$/
const CLEAR = '.cm-tooltip-autocomplete > ul > li[aria-selected]'

/** Whether Enter and Tab take the completion that is marked: one that was chosen, or whose name is being typed. */
function isTaken(state: EditorState): boolean {
  const option = selectedCompletion(state)
  if (!option) return false
  if (isAsked(state)) return true
  const { head } = state.selection.main
  const before = state.sliceDoc(state.doc.lineAt(head).from, head)
  const [typed = ''] = WORD.exec(before) ?? []
  const word = typed.replace('`', '').toLowerCase()
  if (word === '') return before.endsWith('.') || typed !== ''
  const label = option.label.toLowerCase()
  return label.startsWith(word) && option.label !== typed
}

const take: Command = (view) => {
  if (isTaken(view.state)) return acceptCompletion(view)
  closeCompletion(view)
  return false
}

function note(command: Command): Command {
  return (view) => {
    if (!command(view)) return false
    view.dispatch({ effects: choose.of(null) })
    return true
  }
}

const ask: Command = (view) => {
  view.dispatch({ effects: choose.of(null) })
  return startCompletion(view)
}

const KEYS = [
  { key: 'Enter', run: take },
  { key: 'Tab', run: take },
  { key: 'ArrowDown', run: note(moveCompletionSelection(true)) },
  { key: 'ArrowUp', run: note(moveCompletionSelection(false)) },
  { key: 'PageDown', run: note(moveCompletionSelection(true, 'page')) },
  { key: 'PageUp', run: note(moveCompletionSelection(false, 'page')) },
]

/**
 * Completion that never changes what was right: Enter and Tab complete what was chosen by arrows, or is being typed as a
 * name. A row that they do not take is not marked.
 */
export function completing(config: Parameters<typeof autocompletion>[0] = {}): Extension {
  const others = completionKeymap.filter(({ key }) => !KEYS.some((own) => own.key === key))
  const keys = others.map((one) => (one.run === startCompletion ? { ...one, run: ask } : one))
  return [
    chosen,
    autocompletion({ ...config, defaultKeymap: false }),
    Prec.highest(keymap.of([...KEYS, ...keys])),
    EditorView.editorAttributes.of((view) => (isTaken(view.state) ? { 'data-completes': 'true' } : null)),
    EditorView.theme({ [`&:not([data-completes]) ${CLEAR}`]: { color: 'inherit', background: 'none' } }),
  ]
}
