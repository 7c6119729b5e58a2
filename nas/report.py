"""Write report.html: a run, a fit or a calibration as one offline page to look at and send; open it."""

from nas.commands.requests import ReportRequest
from nas.terminal.parser import command


def report(request: ReportRequest) -> None:
    """Write an offline page of a run, a fit or a calibration, or open one; nothing in the folder is executed."""
    from nas.commands.answer_folders import work_of
    from nas.commands.report import made_from_report, open_page, page_of

    if not (request.show and page_of(request) is not None):
        if (theirs := work_of("report", request.run)) is not None:
            theirs(request)
        elif made_from_report(request.run):
            from nas.pages.page import delivered
            from nas.pages.page import page_of as page_in
            from objectives.plugins import bundled

            pages = {kind: point.load() for kind, point in bundled("pages").items()}
            delivered(request, lambda: page_in(request.run, pages))
        else:
            from nas.commands.report import report as work

            work(request)
    if request.show:
        open_page(request)


main = command(report, "report runs/paper-nsga2-s0", "report runs/paper-nsga2-s0 --open")
if __name__ == "__main__":
    main()
